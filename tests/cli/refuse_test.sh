# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Inputs that are refused, with status 1 and the id of a diagnostic.
. "${srcdir:-.}/tests/cli/support.sh"

# model TEXT ID WHAT: tiny.ra after an edit by sed.
model()
{
	sed "$1" "$here/tiny.ra" >"$tmp/bad.ra"
	run "$tmp/bad.ra" "$tmp/trees"
	refused 1 "$2" "$3"
}

model 's/E\[word\]/F[word]/' unknown-name "a name that is not declared"
model 's/W @ left.h/E @ left.h/' shape-mismatch "shapes that differ"
model 's/^structure.*/structure heap/' bad-structure "a structure that does not exist"
model '/^inner/,/left/d' missing-declaration "a case without a body"
model 's/+ right.h/+ right.h +/' syntax "a line that breaks off"
run "$tmp/none.ra" "$tmp/trees"
refused 1 cannot-read "a model that is not there"
run "$tmp" "$tmp/trees"
refused 1 cannot-read "a folder for a model"

# --- weights ---

# with_weights ID WHAT: the tiny model with the weights $bad.
bad=$tmp/bad.safetensors
with_weights()
{
	esp run "$here/tiny.ra" "$tmp/trees" --weights "$bad" --vocab "$tmp/words" --backend interpreter
	refused 1 "$1" "$2"
}

floats 1 2 3 4 5 6 7 8 | weights "{$E}" >"$bad"
with_weights missing-weight "weights that lack a parameter"
X='"X":{"dtype":"F32","shape":[1],"data_offsets":[48,52]}'
floats 1 2 3 4 5 6 7 8 0 1 1 0 0 | weights "{$E,$W,$X}" >"$bad"
with_weights extra-weight "weights with a tensor too many"
with_weights "del w['X']" "and how it is left out"
floats 1 2 3 4 5 6 7 8 0 1 1 0 0 | weights "{$E,$W,\"it's\\u001b[2J\":${X#*:}}" >"$bad"
with_weights "del w['it\\x27s\\x1b[2J']" "whatever its name is"
steps='"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[48,56]}'
floats 1 2 3 4 5 6 7 8 0 1 1 0 0 0 | weights "{$E,$W,$steps}" >"$bad"
esp run "$here/tiny.ra" "$tmp/trees" --weights "$bad" --vocab "$tmp/words" --backend interpreter
tap_is "$status,$err,$(echo "$out" | wc -l)" "0,,6" "a counter that stands beside the weights is no weight"
floats 1 2 3 4 5 6 7 8 0 1 1 0 0 0 0 0 | weights \
	"{$E,\"W\":{\"dtype\":\"I64\",\"shape\":[2,2],\"data_offsets\":[32,64]}}" >"$bad"
with_weights "weight-type" "unless the model reads it"
floats 1 2 3 4 5 6 7 8 0 1 1 0 0 0 0 0 | weights "{${E/F32/F64},$W}" >"$bad"
with_weights unknown-dtype "numbers of double precision"
with_weights "tensor.float() in PyTorch, array.astype('f4') in NumPy" "and how they are converted"
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights \
	"{$E,\"W\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[32,48]}}" >"$bad"
with_weights extent-conflict "a matrix of another shape"
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights "{$E,\"W\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[32,48]}}" >"$bad"
with_weights weight-rank "a vector for a matrix"
floats 1 2 3 4 5 6 7 8 0 1 | weights "{$E,$W}" >"$bad"
with_weights bad-tensor "a file that was cut short"
printf '\377\377\377\377\0\0\0\0{}' >"$bad"
with_weights bad-weights "a header longer than the file"
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights "{${E%,*},\"data_offsets\":[0,32]},$W" >"$bad"
with_weights bad-weights "a header that is no JSON"
printf '' >"$bad"
with_weights bad-weights "an empty file"
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights "{${E/F32/F8},$W}" >"$bad"
with_weights unknown-dtype "numbers of a type that is not read"
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights "{${E/F32/F16},$W}" >"$bad"
with_weights bad-tensor "a type that does not fit the bytes"
floats 1 2 3 4 5 6 7 8 0 1 | weights "{$E,${W/32,48/24,40}}" >"$bad"
with_weights tensor-overlap "tensors that share bytes"
floats 1 2 3 4 5 6 7 8 0 0 1 1 0 | weights "{$E,${W/32,48/36,52}}" >"$bad"
with_weights tensor-gap "bytes that belong to no tensor"
floats 1 2 3 4 5 6 7 8 0 1 1 0 0 | weights "{$E,${W/\[2,2\]/[4]},$X}" >"$bad"
with_weights weight-rank "a vector for a matrix and a tensor too many"
tap_is "$(grep -c ' error: ' "$tmp/err"),$(grep -c extra-weight "$tmp/err")" 2,1 "all that is wrong is told at once"
floats 1 | weights "{\"X\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}" >"$bad"
with_weights extra-weight "weights of another model"
tap_is "$(grep -c missing-weight "$tmp/err")" 2 "every parameter that is missing is told"

# --- structures ---

# tree TEXT ID WHAT
tree()
{
	printf "$1" >"$tmp/bad.ptb"
	run "$here/tiny.ra" "$tmp/bad.ptb"
	refused 1 "$2" "$3"
}

tree '(2 (2 a) (2 b)' unbalanced "a bracket that is not closed"
tree ')(2 (2 a) (2 b))' unbalanced "a bracket too many"
tree '' empty-input "an empty file"
tree '(2 (2 a) (2 b) (2 c))' wrong-arity "three children where two are wanted"
case $err in *--binarize*) tap_ok 0 "which can be binarized" ;; *) tap_ok 1 "which can be binarized" ;; esac
tree '(2 (2 a))' wrong-arity "one child where two are wanted"
case $err in *--binarize*) tap_ok 1 "which can be left out" ;; *--collapse*) tap_ok 0 "which can be left out" ;; *) tap_ok 1 "which can be left out" ;; esac
# Only brackets are collapsed and binarized, and once is enough.
silent()
{
	case $status,$err in
	*--collapse* | *--binarize*) tap_ok 1 "$1" ;;
	1,*wrong-arity*"hint: "*"any number of children"*) tap_ok 0 "$1" ;;
	*) tap_ok 1 "$1" ;;
	esac
}
echo '{"children": [[], [0]], "data": {"word": [0, 0]}}' >"$tmp/chain.jsonl"
run "$here/tiny.ra" "$tmp/chain.jsonl"
silent "no option of brackets is named for a chain of JSON"
echo '{"children": [[], [], [], [0, 1, 2]], "data": {"word": [0, 0, 0, 0]}}' >"$tmp/wide.jsonl"
run "$here/tiny.ra" "$tmp/wide.jsonl"
silent "nor for a wide node"
echo 'a b' >"$tmp/line"
run "$here/tiny.ra" "$tmp/line" --from plain
silent "nor for lines of words"
sed 's/tree(left, right)/tree(left, middle, right)/' "$here/tiny.ra" >"$tmp/ternary.ra"
printf '(2 (2 a) (2 b))\n' >"$tmp/pair.ptb"
run "$tmp/ternary.ra" "$tmp/pair.ptb"
silent "nor for two children, which --collapse leaves as they are"
printf '(2 (2 (2 a)) (2 b))\n' >"$tmp/unary.ptb"
run "$tmp/ternary.ra" "$tmp/unary.ptb" --collapse
silent "nor again when it was given"
run "$here/tiny.ra" "$tmp/unary.ptb" --collapse
tap_is "$status,$err" "0," "which mends what it is named for"

tree '(2 (2 a) (2))' bad-tree "a label without a word"
tree '(2 a b)' bad-tree "two words in a leaf"
run "$here/tiny.ra" "$tmp/none.ptb"
refused 1 cannot-read "an input that is not there"

# The second minibatch begins at tree 2: the message must lead there.
printf '(2 a)\n(2 a)\n(2 a)\n(2 (2 a))\n' >"$tmp/bad.ptb"
run "$here/tiny.ra" "$tmp/bad.ptb" --batch 2
case $status,$err in
1,"$tmp/bad.ptb:4: error: node 1 of structure 3 has 1 child;"*wrong-arity*--collapse*) tap_ok 0 \
	"a message leads to the tree" ;;
*) tap_ok 1 "a message leads to the tree" ;; esac
esp check "$here/tiny.ra" "$tmp/bad.ptb" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words"
case $status,$err in 1,"$tmp/bad.ptb:4: error: node 1 of structure 3"*wrong-arity*) tap_ok 0 "so does one of check" ;;
*) tap_ok 1 "so does one of check" ;; esac

tap_is "$(grep -c bad.ptb "$tmp/err")" 1 "which names the place once"

# --- what files hold reaches the terminal without its control characters ---

escape=$(printf '\033')
printf '(2 (2 a) (2 \033]0;x\007\302\233\303\2512J)))\n' >"$tmp/bad.ptb"
run "$here/tiny.ra" "$tmp/bad.ptb"
case $err in *"$escape"* | *"$(printf '\007')"* | *"$(printf '\302\233')"*) tap_ok 1 "a message obeys no file" ;;
*"?]0;x??$(printf '\303\251')2J"*) tap_ok 0 "a message obeys no file" ;;
*) tap_ok 1 "a message shows what it masks" ;; esac

# --- names that are almost right ---

# meant TEXT HINT ERRORS: tiny.ra after an edit by sed.
meant()
{
	sed "$1" "$here/tiny.ra" >"$tmp/bad.ra"
	esp check "$tmp/bad.ra"
	case $err in *"did you mean '$2'?"*) tap_ok 0 "$1: '$2' may be meant" ;; *) tap_ok 1 "$1: '$2' may be meant" ;; esac
	tap_is "$(printf '%s\n' "$err" | grep -c ' error: ')" "$3" "$1: nothing else is wrong"
}
meant 's/left\.h/lefft.h/' left.h 1
meant 's/^inner:/iner:/' inner 1
meant 's/^leaf:/laef:/' leaf 1

# --- vocabularies ---

printf 'a\nb\n' >"$tmp/words"
run "$here/tiny.ra" "$tmp/trees"
case $status,$err in 1,*"trees:2:23"*unknown-word*) tap_ok 0 "a word that is not in a vocabulary without <unk>" ;;
*) tap_ok 1 "a word that is not in a vocabulary without <unk>" ;; esac
printf 'a\nb\na\n' >"$tmp/words"
run "$here/tiny.ra" "$tmp/trees"
refused 1 duplicate-word "a word that stands twice"
printf 'x\nx1\nx2\nx3\nx4\na\nb\nc\nzz\n' >"$tmp/words"
run "$here/tiny.ra" "$tmp/trees"
refused 1 token-out-of-range "a vocabulary larger than the weights"

printf '\357\273\277a\nb\nc\n<unk>\n' >"$tmp/words"
run "$here/tiny.ra" "$tmp/trees"
refused 1 "words:1:1: error: the text begins with a byte order mark of UTF-8 [byte-order-mark]" \
	"a byte order mark before the words"
printf 'a\nb\nc\n<unk>\n' >"$tmp/words"
{ printf '\357\273\277' && cat "$tmp/trees"; } >"$tmp/marked"
run "$here/tiny.ra" "$tmp/marked"
refused 1 byte-order-mark "one before the trees"
{ printf '\357\273\277' && cat "$here/tiny.ra"; } >"$tmp/marked.ra"
run "$tmp/marked.ra" "$tmp/trees"
refused 1 byte-order-mark "one before the model"
printf '\377\376(\0002\0' >"$tmp/marked"
run "$here/tiny.ra" "$tmp/marked"
refused 1 "byte order mark of UTF-16" "a text in UTF-16"

# --- trees that are none ---

# json TEXT ID WHAT
json()
{
	printf '%s\n' "$1" >"$tmp/bad.jsonl"
	run "$here/tiny.ra" "$tmp/bad.jsonl"
	refused 1 "$2" "$3"
}
json '{"children": [[], [], [0, 1], []], "data": {"word": [0, 1, null, 2]}}' \
	"bad.jsonl:1: error: node 2 of structure 0 is no child of any node, but the root of the tree is node 3 [unreached-node]" \
	"nodes that the root does not reach"
json '{"children": [[], [], [0, 1]], "root": 0, "data": {"word": [0, 1, null]}}' unreached-node "a root with a parent"
json '{"children": [[], [], [0, 7]], "data": {"word": [0, 1, null]}}' \
	"bad.jsonl:1: error: child 1 of node 2 of structure 0 is node 7, but it has nodes 0 to 2 only [dangling-child]" \
	"a child that is none"
json '{"children": [[], [0, 0]], "data": {"word": [0, null]}}' \
	"bad.jsonl:1: error: node 0 of structure 0 is a child of node 1 of structure 0 and again of node 1" "a child twice"
json '{"children": [[], [], [0, 1]], "data": {"word": [0, 9, null]}}' \
	"bad.jsonl:1: error: 'word' of node 1 of structure 0 is 9" "a word that is none"

# --- products in integers ---

# products DECLARATION EXPRESSION TEXT NAME: a model whose one parameter is declared so.
products()
{
	printf 'model m\nstructure tree(left, right)\ninput word : token\nparam E[V, D]\nparam W[D, D] %s\nstate h[D]\nleaf:\n    h = E[word]\ninner:\n    h = %s\noutput y = h\n' \
		"$1" "$2" >"$tmp/products.ra"
	esp run "$tmp/products.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter
}
products "products i16" "W @ left.h + right.h"
refused 1 "products.ra:5:7: error: products with 'W' cannot be computed in i16: no bound is known of what they multiply, here of h [products-refused]" \
	"a product without a bound that is declared to be in integers"
products "products i8" "W[0] + left.h + right.h"
refused 1 "there is no sum of products of floats with it [products-refused]" "and what is no product"
products "products bf16" "W[0] + left.h + right.h"
refused 1 "products with 'W' cannot be computed in bf16: there is no sum of products of floats with it [products-refused]" "nor is it one in bf16"
refused 1 "multiply something that is computed of inputs or states by it" "and no bound is asked for"
products "products bf16" "W @ left.h + right.h"
tap_is "$status" 0 "bf16 needs no bound"
products "products f16" "W @ left.h + right.h"
refused 1 "products with 'W' cannot be computed in f16: no bound is known of what they multiply, here of h [products-refused]" "f16 needs a bound"
products "products f16" "W @ tanh(left.h) + right.h"
tap_is "$status" 0 "which a tanh has"
products "products f32" "W @ left.h + right.h"
tap_is "$status" 0 "f32 needs no bound"
products "products i16" "W @ tanh(left.h) + right.h"
tap_is "$status" 0 "with a bound the shortest sum is in integers"

# long_sum K: explains a product of so many terms.
long_sum()
{
	printf 'model m\nstructure none\ninput x[K] within 1\nparam W[N, K] products i8x3\noutput y = W @ x\n' >"$tmp/long.ra"
	head -c $((4 * $1)) /dev/zero | weights "{\"W\":{\"dtype\":\"F32\",\"shape\":[1,$1],\"data_offsets\":[0,$((4 * $1))]}}" \
		>"$tmp/long.safetensors"
	esp explain "$tmp/long.ra" --weights "$tmp/long.safetensors"
}
long_sum 65535
tap_is "$status,$(grep -c 'W\*x are computed in i8x3' <<<"$out")" "0,1" "a sum of products of bytes that fits in 32 bits"
long_sum 65536
refused 1 "in i8x3: sums of more than 65535 products of bytes may not fit in 32 bits [products-refused]" "one more does not"

# looked_up OPTION...: explains products with rows that words look up, of which the rules would make a table.
looked_up()
{
	printf 'model m\nstructure tree(left, right)\ninput word : token\nparam E[V, D]\nparam W[D, D] products bf16\nstate h[D]\nleaf:\n    h = tanh(W @ E[word])\ninner:\n    h = left.h + right.h + sum(tanh(E @ left.h))\noutput y = h\n' >"$tmp/looked_up.ra"
	esp explain "$tmp/looked_up.ra" --weights "$tmp/tiny.safetensors" "$@"
}
looked_up
tap_is "$status" 0 "no table takes a declared product away"
[[ $out == *"computed in bf16"* ]]
tap_ok $? "it is computed as declared"
[[ $out == *"products E*h are computed in f32: neither the model nor --precision asks for another precision"* ]]
tap_ok $? "one that is not declared is in f32 since nothing asks for another precision" || printf '# %s\n' "$out"
looked_up --rules -tables
tap_is "$status" 0 "as without tables"

# --- back ends and schedules ---

printf 'a\nb\nc\n<unk>\n' >"$tmp/words"
run "$here/tiny.ra" "$tmp/trees" --schedule "$tmp/none"
refused 1 "cannot read schedule" "a schedule that is not there"
echo 'do it well' >"$tmp/schedule"
run "$here/tiny.ra" "$tmp/trees" --schedule "$tmp/schedule"
refused 1 illegal-schedule "a schedule that is none"
esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend nothing
refused 1 backend-not-found "a back end that is not there"
tap_done
