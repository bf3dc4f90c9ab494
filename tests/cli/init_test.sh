# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier init: models to start from.
. "${srcdir:-.}/tests/cli/support.sh"

for kind in tree sequence dag none; do
	esp init "$tmp/$kind.ra" --kind $kind
	cmp "$tmp/$kind.ra" "$srcdir/tools/init/$kind.ra"
	tap_is "$?,$status,$err" "0,0," "$kind: a new file has the model"
	esp init --kind $kind
	tap_is "$status,$out" "0,$(cat "$tmp/$kind.ra")" "$kind: so has standard output"
	esp check "$tmp/$kind.ra"
	case $status,$out in 0,*"a model of a $kind "* | *"a model without a structure"*) tap_ok 0 "$kind: it is a model" ;; *) tap_ok 1 "$kind: it is a model" ;; esac
	awk 'length > 122' "$tmp/$kind.ra" | grep -q . && found=1 || found=0
	tap_ok $found "$kind: its lines are short"
done
# sizes MODEL: a small size for each dimension, no two the same.
sizes()
{
	sed -n 's/#.*//; /^\(param\|input\|edge\|state\)/p' "$1" | grep -o '\[[^]]*\]' | grep -o '[A-Z][A-Z]*' | sort -u |
		awk '{ printf "%s%s=%d", comma, $1, 4 + NR; comma = "," }'
}

# random_weights MODEL: a file with weights for it, which is named.
random_weights()
{
	local structures=parse
	grep -q '^structure dag' "$1" && structures=grid
	"$ESPALIER" bench "$1" --sizes "$(sizes "$1")" --structures $structures --length 3 --batches 1 --threads 1 \
		--minibatches 1 \
		--runs 1 --backend interpreter --keep "$tmp/random" >/dev/null 2>"$tmp/err" || cat "$tmp/err" >&2
	echo "$tmp/random/weights.safetensors"
}

# runs KIND INPUT: the model of that kind runs, with a vocabulary if need be.
runs()
{
	grep -q "espalier run THIS.ra" "$tmp/$1.ra"
	tap_ok $? "$1: it says how it is run"
	esp run "$tmp/$1.ra" "$2" --weights "$(random_weights "$tmp/$1.ra")" --vocab "$tmp/words" --backend interpreter
	case $status,$err,$out in 0,,?*) tap_ok 0 "$1: and it runs" ;; *) tap_ok 1 "$1: and it runs" && show ;; esac
}
runs tree "$tmp/trees"
echo '{"children":[[],[0],[1]],"data":{"word":["a","b","zz"]}}' >"$tmp/sequence.json"
runs sequence "$tmp/sequence.json"
echo '{"children":[[],[0],[0],[1,2]],"data":{"x":[[1,2,3,4,5,6,7],[1,2,3,4,5,6,7],[0,0,0,0,0,0,0],[1,2,3,4,5,6,7]]}}' >"$tmp/dag.json"
runs dag "$tmp/dag.json"
echo "{\"data\":{\"pixels\":[[$(seq -s, 784)]]}}" >"$tmp/none.json"
runs none "$tmp/none.json"
esp init
tap_is "$out" "$(cat "$tmp/tree.ra")" "a tree is what one gets when nothing is said"

# The words of the language, as its page lists them: who starts from these models meets most of them, and the rest in
# the examples.
reserved=$(sed -n 's/^Reserved: //p' "$srcdir/doc/model-text.md" | tr -d '`,.')
missing=
for word in $reserved; do
	sed 's/#.*//' "$tmp/tree.ra" "$tmp/sequence.ra" "$tmp/dag.ra" "$srcdir"/examples/*/*.ra | grep -qw "$word" || \
		missing="$missing $word"
done
tap_is "$missing" "" "they and the examples use every word of the language"
[ "$(echo $reserved | wc -w)" -gt 10 ]
tap_ok $? "which were looked for"

echo mine >"$tmp/mine.ra"
esp init "$tmp/mine.ra"
refused 1 "File exists" "a file that is there is refused"
tap_is "$(cat "$tmp/mine.ra")" "mine" "and stays as it was"
ln -s nowhere "$tmp/link.ra"
esp init "$tmp/link.ra"
refused 1 "File exists" "a link to nowhere is not followed"
esp init "$tmp/none/new.ra"
refused 1 "No such file" "a folder that is not there is told"
esp init "$tmp/new.ra" --kind graph
refused 2 "tree|sequence|dag|none" "a kind that does not exist is refused"
[ ! -e "$tmp/new.ra" ]
tap_ok $? "before a file is made"

# --- a model for weights ---

# skeleton WEIGHTS KIND ARGUMENT...: leaves the model in $tmp/skeleton.ra.
skeleton()
{
	rm -f "$tmp/skeleton.ra"
	esp init "$tmp/skeleton.ra" --weights "$@"
}
checked=
for model in "$srcdir"/examples/*/*.ra; do
	weights=$(random_weights "$model")
	for kind in tree sequence dag none; do
		skeleton "$weights" --kind $kind
		esp check "$tmp/skeleton.ra" --weights "$weights"
		case $status,$out in 0,*"a model of a $kind "* | *"a model without a structure"*) ;; *) checked="$checked $model/$kind" && show ;; esac
	done
done
tap_is "$checked" "" "a model for the weights of every example is one as it stands"

skeleton "$(random_weights "$srcdir/examples/lstm/lstm.ra")" --kind sequence
grep -v '^#' "$tmp/skeleton.ra" | grep -v '^$' >"$tmp/found"
cat >"$tmp/expected" <<'END'
model skeleton
structure sequence
param embedding.weight[8, E]
param lstm.weight_ih_l0[4*D, E]
param lstm.weight_hh_l0[4*D, D]
param lstm.bias_ih_l0[4*D]
param lstm.bias_hh_l0[4*D]
param output.weight[F, D]
param output.bias[F]
state h[D]
leaf:
    h = zeros(D)
inner:
    h = previous.h
output result = h at root
output unused = (sum(sum(embedding.weight)) +
    sum(sum(lstm.weight_ih_l0)) +
    sum(sum(lstm.weight_hh_l0)) +
    sum(lstm.bias_ih_l0) +
    sum(lstm.bias_hh_l0) +
    sum(sum(output.weight)) +
    sum(output.bias)) at root
END
cmp "$tmp/found" "$tmp/expected"
tap_ok $? "sizes that recur have names, and gates that are stacked are multiples" || diff "$tmp/found" \
	"$tmp/expected" | sed 's/^/# /'
grep -q '^# Dimensions are names for sizes that recur: D = 6, E = 7, F = 5.$' "$tmp/skeleton.ra"
tap_ok $? "which are told"

# f32 NAME SHAPE: an entry of the header, one number at byte 4 * $n.
n=0
entry()
{
	header=$header${header:+,}"\"$1\":{\"dtype\":\"${3:-F32}\",\"shape\":[$2],\"data_offsets\":[$n,$((n + ${4:-4}))]}"
	n=$((n + ${4:-4}))
}
header=
entry dense/kernel:0 1
entry 0.weight 1,1
entry node 1
entry left.h 1
entry h 1
entry D ''
entry x 1
entry 'a\nparam b' 1
entry four 1,1,1,1
entry none 0 F32 0
entry steps '' I64 8
entry "it's" 1
head -c $n /dev/zero | weights "{$header}" >"$tmp/odd.safetensors"
skeleton "$tmp/odd.safetensors"
tap_is "$status,$(grep '^#     .*;' "$tmp/skeleton.ra")" "0,#     'dense/kernel:0' f32[1]; its name is none of the language: w['dense.kernel_0'] = w.pop('dense/kernel:0')
#     '0.weight' f32[1, 1]; its name is none of the language: w['_0.weight'] = w.pop('0.weight')
#     'node' f32[1]; its name is none of the language: w['node_'] = w.pop('node')
#     'a\x0aparam b' f32[1]; its name is none of the language: w['a_param_b'] = w.pop('a\x0aparam b')
#     'none' f32[0]; it has no element: del w['none']
#     'it\x27s' f32[1]; its name is none of the language: w['it_s'] = w.pop('it\x27s')" "tensors that are no parameters are told, and what to do"
esp check "$tmp/skeleton.ra"
tap_is "$status,$err" "0," "what is left is a model, whatever its names are"

n=0
header=
entry 'a b' 1
entry a-b 1
entry _state 1
entry x._output 1
head -c $n /dev/zero | weights "{$header}" >"$tmp/alike.safetensors"
skeleton "$tmp/alike.safetensors"
tap_is "$status,$(grep '^#     .*;' "$tmp/skeleton.ra" | sed 's/.*: //')" "0,w['a_b'] = w.pop('a b')
w['a_b2'] = w.pop('a-b')" "names that are mended differ from each other"
tap_is "$(grep '^param' "$tmp/skeleton.ra")" "param _state[1]
param x._output[1]" "any name of the language is one"

# A parameter may have the name that the children would be given.
header= n=0
entry k 1
entry k2 1
head -c $n /dev/zero | weights "{$header}" >"$tmp/k.safetensors"
skeleton "$tmp/k.safetensors" --kind dag
esp check "$tmp/skeleton.ra" --weights "$tmp/k.safetensors"
tap_is "$status,$err,$(grep -c 'sum(k3.h for k3 in children)' "$tmp/skeleton.ra")" "0,,1" \
	"children have a name that no parameter has"

# More parameters than operators may follow one from another.
header= n=0
for ((i = 0; i < 1010; i++)); do entry "p$i" ''; done
head -c $n /dev/zero | weights "{$header}" >"$tmp/many.safetensors"
skeleton "$tmp/many.safetensors"
esp check "$tmp/skeleton.ra" --weights "$tmp/many.safetensors"
tap_is "$status,$err,$(grep -o 'params [0-9]*' <<<"$out"),$(sed -n '/^output unused/,$p' "$tmp/skeleton.ra" | grep \
	-ow 'p[0-9]*' | sort -u | wc -l)" \
	"0,,params 1010,1010" "a model of many parameters is one, and uses all of them"

printf 'PK\3\4 no weights' >"$tmp/zip"
skeleton "$tmp/zip"
refused 1 "weights-format" "weights that are none are refused"
[ ! -e "$tmp/skeleton.ra" ]
tap_ok $? "before a file is made"
tap_done
