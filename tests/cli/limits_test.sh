# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Inputs that announce, repeat or nest more than anybody means: taken or refused, in seconds, within little memory and
# stack.
. "${srcdir:-.}/tests/cli/support.sh"

# of N TEXT: the text so many times.
of()
{
	head -c $(($1 * ${#2})) < <(yes "$2" | tr -d '\n')
}

# model LINES...: tiny.ra with these lines in place of the inner body.
model()
{
	sed '/^inner:/,$d' "$here/tiny.ra"
	echo 'inner:'
	printf '    w = W @ left.h\n'
	cat
	printf '\noutput y = h at root\n'
}

# bounded ARGUMENT...: a command that has ten seconds of the processor, 2 GiB and a stack of $stack KiB; shadowed, more.
stack=256
bounded()
{
	local limits=(-t 10 -v 2000000 -s $stack)
	[ -z "$shadowed" ] || limits=(-t 100 -s 65536)
	out=$(ulimit "${limits[@]}"; "$ESPALIER" "$@" 2>"$tmp/err" </dev/null)
	status=$?
	err=$(head -c 4000 "$tmp/err")
}

# says ID WHAT: the last command was refused with the id.
says()
{
	case $status,$err in
	1,*"[$1]"*) tap_ok 0 "$2: $1" ;;
	*) tap_ok 1 "$2: $1" || show ;;
	esac
}

# taken WHAT
taken()
{
	tap_is "$status" 0 "$1" || show
}

# --- texts of models ---

check()
{
	bounded check "$tmp/large.ra" --weights "$tmp/tiny.safetensors"
}

model >"$tmp/large.ra" < <(printf '    h = w'; of 1000000 ' + left.h')
check
says model-too-large "a sum of 10^6 terms"
model >"$tmp/large.ra" < <(printf '    h = w + '; of 100000 '('; printf left.h; of 100000 ')')
check
says too-deep "10^5 parentheses"
model >"$tmp/large.ra" < <(printf '    h = w + '; of 100000 'tanh('; printf left.h; of 100000 ')')
check
says too-deep "10^5 calls of functions"
model >"$tmp/large.ra" < <(printf '    h = w + '; of 100000 '-'; printf left.h)
check
says too-deep "10^5 signs"
model >"$tmp/large.ra" < <(printf '    h = w'; of 100000 '[0:1]')
check
says too-deep "10^5 slices"
{ sed '/^leaf:/,$d' "$here/tiny.ra"; echo 'def f0(x) = x + x'; for i in $(seq 40); do echo \
	"def f$i(x) = f$((i - 1))(f$((i - 1))(x))"; done
	printf 'leaf:\n    h = E[word]\ninner:\n    h = W @ f40(left.h)\noutput y = h at root\n'; } >"$tmp/large.ra"
check
says model-too-large "functions that double forty times"
# chain N FIRST EACH: an operator after another.
chain()
{
	model < <(echo "    x0 = $2"; for i in $(seq "$1"); do echo "    x$i = ${3//x/x$((i - 1))}"; done; printf \
		'    h = x%d' "$1")
}
# As many as may follow one another, and be in a body.
layers=490 most=900
[ -z "$shadowed" ] || layers=120 most=200
chain 400 w 'W @ x' >"$tmp/large.ra"
check
taken "400 products one after another"
chain $layers w 'tanh(W @ x)' >"$tmp/large.ra"
check
taken "$layers layers"
stack=2048
chain $layers w 'tanh(x + right.h)' >"$tmp/large.ra"
check
taken "$layers sums, one within the other"
model >"$tmp/large.ra" < <(printf '    h = w'; for i in $(seq $most); do printf ' + W @ tanh(%s * right.h)' "$i"; done)
check
taken "a sum of $most terms"
model >"$tmp/large.ra" < \
	<(printf '    h = tanh(w)'; for i in $(seq $most); do printf ' + tanh(%s * right.h)' "$i"; done)
bounded check "$tmp/large.ra" --weights "$tmp/tiny.safetensors" --memory-cap 100000000
taken "a sum of $most terms without products of matrices, within 100 MB"
{ sed '/^leaf:/,$d' "$here/tiny.ra"; printf 'leaf:\n    x0 = E[word]\n'; for i in $(seq $most); do echo \
	"    x$i = tanh(x$((i - 1)))"; done
	printf '    h = x%d\ninner:\n    h = W @ left.h\noutput y = h at root\n' $most; } >"$tmp/large.ra"
check
taken "$most operators that become a table"
# Longer chains get a stack of their own, as deep as they are long.
stack=256
chain $((layers * 4)) w 'tanh(W @ x)' >"$tmp/large.ra"
check
taken "$((layers * 4)) layers"
chain $((layers * 4)) w 'tanh(x + right.h)' >"$tmp/large.ra"
check
taken "$((layers * 4)) sums, one within the other"
chain 16000 w 'tanh(x)' >"$tmp/large.ra"
bounded check "$tmp/large.ra" --weights "$tmp/tiny.safetensors" --operators 100000
says model-too-large "more than 16000 operators one after another"
chain 400 w 'W @ x' >"$tmp/large.ra"
bounded check "$tmp/large.ra" --weights "$tmp/tiny.safetensors" --operators 100
says model-too-large "but not when 100 operators are allowed"
bounded check "$tmp/large.ra" --weights "$tmp/tiny.safetensors" --memory-cap 300000
says memory-cap "nor within 300 KB"
tap_is "$(grep -c '\[out-of-memory\]' "$tmp/err")" 1 "which is said to be a want of memory"
{ sed '/^state/,$d' "$here/tiny.ra"; for i in $(seq 70000); do echo "param p$i[D]"; done; } >"$tmp/large.ra"
check
says model-too-large "70000 parameters"
yes a: | head -n 4000000 >"$tmp/large.ra"
check
says syntax "4 * 10^6 headers that name no body"
{ sed '/^leaf:/,$d' "$here/tiny.ra"; yes node: | head -n 1000000; } >"$tmp/large.ra"
check
says duplicate-name "10^6 bodies of the same nodes"
# unknown N DECLARATION BODY: so many declarations, then statements of names that are like theirs but unknown; & is a
# number.
unknown()
{
	sed '/^leaf:/,$d' "$here/tiny.ra"
	seq "$1" | sed "s/.*/$2/"
	printf 'leaf:\n    h = E[word]\ninner:\n    h = left.h\n'
	seq "$1" | sed "s/.*/$3/"
	printf 'output y = h at root\n'
}
unknown 60000 'case c& = leaf when word == &' 'd&:' >"$tmp/large.ra"
check
says syntax "60000 headers that are like those of 60000 cases"
unknown 100000 'def f&(x) = x' '    a& = g&(w)' >"$tmp/large.ra"
check
says unknown-function "10^5 calls of functions whose names are like 10^5 others"
unknown 100000 'state s&[D]' '    a& = left.t&' >"$tmp/large.ra"
check
says unknown-name "10^5 states of a child whose names are like 10^5 others"
unknown 60000 'param p&[D&]' '    a& = zeros(E&)' >"$tmp/large.ra"
check
says unknown-name "60000 dimensions whose names are like 60000 others"
{ sed '/^leaf:/,$d' "$here/tiny.ra"; seq 100000 | sed 's/.*/def f&(x) = x/'; echo 'def d0(x) = g(x)'
	for i in $(seq 16); do echo "def d$i(x) = d$((i - 1))(x) + d$((i - 1))(x)"; done
	printf 'leaf:\n    h = d16(E[word])\ninner:\n    h = left.h\noutput y = h at root\n'; } >"$tmp/large.ra"
check
says unknown-function "one call of an unknown function, expanded 2^16 times"
sed 's/^structure.*/structure tree(2000000000)/' "$here/tiny.ra" >"$tmp/large.ra"
check
says bad-structure "2 * 10^9 children"
sed 's/W\[D, D\]/W[99999999999999999999*D, D]/' "$here/tiny.ra" >"$tmp/large.ra"
check
says bad-number "a size beyond 64 bits"

# --- weights ---

# header BYTES-OF-LENGTH TEXT: a safetensors file that says that its header has that length.
header()
{
	printf "$1"
	printf %s "$2"
}

# announced ID WHAT
announced()
{
	bounded check "$here/tiny.ra" --weights "$tmp/large.safetensors"
	says "$1" "$2"
}

header '\0\0\0\0\0\0\0\020' '{}' >"$tmp/large.safetensors"
announced bad-weights "a header of 2^60 bytes"
header '\377\377\377\377\377\377\377\377' '{}' >"$tmp/large.safetensors"
announced bad-weights "a header of 2^64 - 1 bytes"
weights '{"E":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}' \
	</dev/null >"$tmp/large.safetensors"
announced bad-tensor "a tensor of 2^64 numbers"
weights '{"E":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}}' </dev/null >"$tmp/large.safetensors"
announced bad-tensor "a tensor of 2^64 bytes"
weights '{"E":{"dtype":"F32","shape":[2147483648,1],"data_offsets":[0,8589934592]}}' \
	</dev/null >"$tmp/large.safetensors"
announced bad-tensor "a tensor of 2^31 rows that are not there"
weights "{\"a\":$(of 10000 '[')}" </dev/null >"$tmp/large.safetensors"
announced bad-weights "10^4 brackets in a header"
names=$(for i in $(seq 500); do printf ',"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' "$i"; done)
weights "{${names#,}}" </dev/null >"$tmp/large.safetensors"
announced missing-weight "a file of 500 tensors that the model does not name"
tap_is "$(grep -c ' error: ' "$tmp/err")" 50 "of which so many are told as are read"

# --- structures ---

any=$tmp/any.ra
printf 'model any\nstructure tree(*)\ninput word : token\nparam E[V, D]\nstate h[D]\nleaf:\n    h = E[word]\ninner:\n    h = sum(k.h for k in children)\noutput y = h at root\n' >"$any"
floats 1 2 3 4 5 6 7 8 | weights "{$E}" >"$tmp/e.safetensors"

# input NAME: runs over it.
input()
{
	bounded run "$any" "$tmp/$1" --weights "$tmp/e.safetensors" --vocab "$tmp/words" --backend interpreter --threads 1
}

{ of 100000 '(1 '; printf a; of 100000 ')'; } >"$tmp/deep.ptb"
input deep.ptb
taken "10^5 brackets, each in the one before"
{ of 1000000 '(1 '; } >"$tmp/open.ptb"
input open.ptb
says unbalanced-tree "10^6 brackets that are not closed"
{ printf '(1 '; of 100000 '(1 a)'; printf ')'; } >"$tmp/wide.ptb"
input wide.ptb
taken "10^5 children of one node"
{ printf '{"x":'; of 100000 '['; of 100000 ']'; printf ',"children":[[]],"data":{"word":[0]}}'; } >"$tmp/deep.json"
input deep.json
says bad-json "10^5 brackets of JSON"
printf '{"children":[[],[],[0,99999999999999999999]],"data":{"word":[0,1,null]}}' >"$tmp/big.json"
input big.json
says bad-json "a child beyond 64 bits"
printf '{"children":[[],[],[0,4294967296]],"data":{"word":[0,1,null]}}' >"$tmp/big.json"
input big.json
says bad-json "a child of number 2^32"
printf '{"children":[[],[],[0,1]],"data":{"word":[0,4294967296,null]}}' >"$tmp/big.json"
input big.json
says bad-json "a token of 2^32"
printf '99999999999\ta\ta\tN\t_\t_\t0\ta\t_\t_\n\n' >"$tmp/big.conllu"
input big.conllu
says bad-conllu "a word of number 10^11"

# --- memory ---

for cap in 1000 100000 200000; do
	bounded run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter \
		--memory-cap $cap
	says memory-cap "a run within $cap bytes"
done
bounded run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter \
	--memory-cap 100000000
taken "a run within 100 MB"
if [ -n "$shadowed" ]; then
	tap_skip "a sanitizer needs room" "whatever room the system gives, a run ends by itself"
else
	strange=
	for room in $(seq 20000 4000 140000); do
		(ulimit -v "$room"; "$ESPALIER" run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" \
			--vocab "$tmp/words" --backend interpreter >/dev/null 2>"$tmp/err")
		case $? in 0 | 1 | 127) ;; *) strange="$strange $room:$?" ;; esac # 127: libraries could not be loaded
	done
	tap_is "$strange" "" "whatever room the system gives, a run ends by itself"
fi
tap_done
