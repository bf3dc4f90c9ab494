# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier compare: every form of reference, what differs and where, what is refused.
. "${srcdir:-.}/tests/cli/support.sh"

# compare REFERENCE ARGUMENT...: tiny.ra, or $model, over $tmp/trees with the tiny weights and the interpreter.
compare()
{
	reference=$1
	shift
	esp compare "${model:-$here/tiny.ra}" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" \
		--backend interpreter --ref "$reference" "$@"
}

# equal TEXT: the last comparison found no difference.
equal()
{
	case $status,$err,$out in
	0,,*"equal: no value is farther"*) tap_ok 0 "$1" ;;
	*)
		tap_ok 1 "$1"
		printf '%s\n' "status $status" "$out" "$err" | sed 's/^/# /'
		;;
	esac
}

# found TEXT-OF-OUTPUT TEXT: the last comparison found a difference and said so.
found()
{
	case $status,$err,$out in
	*equal:*) tap_ok 1 "$2" ;;
	1,,*"$1"*) tap_ok 0 "$2" ;;
	*)
		tap_ok 1 "$2"
		printf '%s\n' "status $status" "$out" "$err" "wanted: $1" | sed 's/^/# /'
		;;
	esac
}

# says TEXT-OF-OUTPUT TEXT: it stands in what the last command wrote.
says()
{
	case $out in
	*"$1"*) tap_ok 0 "$2" ;;
	*)
		tap_ok 1 "$2"
		printf '%s\n' "$out" "wanted: $1" | sed 's/^/# /'
		;;
	esac
}

# f32 NUMBER...: whole numbers, nan, inf and -inf as floats.
f32()
{
	for n in "$@"; do
		case $n in
		0) bits=0 ;;
		nan) bits=$((0x7fc00000)) ;;
		inf) bits=$((0x7f800000)) ;;
		-inf) bits=$((0xff800000)) ;;
		*)
			e=0
			while [ $((${n#-} >> (e + 1))) -gt 0 ]; do e=$((e + 1)); done
			bits=$(((127 + e) << 23 | (${n#-} << (23 - e)) & 0x7fffff))
			case $n in -*) bits=$((bits | 0x80000000)) ;; esac
			;;
		esac
		words $bits
	done
}

# words NUMBER...: 32-bit words, the low byte first.
words()
{
	for w in "$@"; do
		printf "\\$(printf %o $((w & 255)))\\$(printf %o $((w >> 8 & 255)))"
		printf "\\$(printf %o $((w >> 16 & 255)))\\$(printf %o $((w >> 24 & 255)))"
	done
}

# npy HEADER: an .npy file, its values read from stdin.
npy()
{
	printf '\223NUMPY\1\0'"\\$(printf %o ${#1})"'\0%s' "$1"
	cat
}

# array SHAPE: an .npy file of floats.
array()
{
	npy "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
}

# tensor NAME SHAPE BEGIN END: an entry of a safetensors header, of floats.
tensor()
{
	printf '"%s":{"dtype":"F32","shape":[%s],"data_offsets":[%s,%s]}' "$@"
}

h="1 2 3 4 5 5 1 2 3 4 5 5 5 6 10 11 7 8"
total="3 7 10 3 7 10 11 21 15"
begin='"structure_begin":{"dtype":"I32","shape":[4],"data_offsets":[0,16]}'

# --- text ---

cat >"$tmp/nodes.txt" <<'END'
tree 0 3 2 2 0
2 4
6 8
10 10
tree 1 5 2 4 1
2 4
6 8
10 10
10 12
20 22
tree 2 1 2 0 1
14 16
END
compare "$tmp/nodes.txt"
equal "outputs of nodes as text"
tap_is "$out" "output twice: 9 nodes of 3 trees, 18 values: the same
classes of the roots: 0 of 3 differ
not in the reference: h, total
equal: no value is farther than 1e-05 + 1.3e-06 * |reference| from the reference" "what was compared is told"
head -n 4 "$tmp/nodes.txt" >"$tmp/prefix.txt"
compare "$tmp/prefix.txt"
equal "the first tree only"
says "the reference has the first 1 of 3 trees" "a reference that is shorter is told of"
printf '0 0 10 10\n2 1 20 22\n\n 4 1 14 16' >"$tmp/roots.txt"
compare "$tmp/roots.txt"
equal "outputs of roots as text"
says "output twice: 3 roots of 3 trees, 6 values" "their rows are roots"
sed 's/20 22/20 23/' "$tmp/nodes.txt" >"$tmp/wrong.txt"
compare "$tmp/wrong.txt"
found "first difference, leaves before their parents: tree 1, node 4, height 2: a b C
    twice[1] is 22, in the reference 23" "a difference in a text is found"
says "computed by $here/tiny.ra:12: output twice = h + h at every node
    or by what this reference does not show: h" "with the statement that computes it"
sed 's/tree 1 5 2 4 1/tree 1 5 2 4 0/' "$tmp/nodes.txt" >"$tmp/wrong.txt"
compare "$tmp/wrong.txt"
found "classes of the roots: 1 of 3 differ" "another class is a difference though all values are the same"
compare "$tmp/roots.txt" --tensor h
tap_is "$status,${out%%:*}" "1,state h" "--tensor says what a text is of"
compare "$tmp/nodes.txt" --at root
refused 1 "rows" "rows of nodes are not of roots"

# --- safetensors ---

# numbers H...: h, twice the tiny model's total, and where trees begin.
reference()
{
	{ words 0 3 8 9 && f32 "$@" && f32 10 21 15; } |
		weights "{$begin,$(tensor h 9,2 16 88),$(tensor total 3 88 100)}"
}
reference $h >"$tmp/good.safetensors"
compare "$tmp/good.safetensors"
equal "states and outputs of a safetensors file"
says "state h: 9 nodes of 3 trees, 18 values: the same
output total: 3 roots of 3 trees, 3 values: the same
not in the reference: twice" "each with its rows"
for batch in 1 2 3; do
	compare "$tmp/good.safetensors" --batch $batch
	equal "minibatches of $batch"
done

# Differences at a root of height 2, at an inner node below it and at a leaf of a later tree.
reference 1 2 3 4 5 5 1 2 3 4 5 7 5 6 10 19 7 8 >"$tmp/bad.safetensors"
for batch in 1 64; do
	compare "$tmp/bad.safetensors" --batch $batch
	found "first difference, leaves before their parents: tree 1, node 2, height 1: a b
    h[1] is 5, in the reference 7; 1 of 2 values of this row are beyond
    computed by $here/tiny.ra:11: h = W @ left.h + right.h
    its children agree in h: nodes 0, 1
different: 2 values are" "children come before their parents, minibatches of $batch"
done
says "2 beyond the tolerance, largest difference 8
    at tree 1, node 4: h[1] is 11, in the reference 19" "the largest difference is told"
reference 1 2 3 4 5 5 1 2 3 4 5 7 5 6 10 19 7 0 >"$tmp/bad.safetensors"
compare "$tmp/bad.safetensors"
found "tree 2, node 0, a leaf: zz
    h[1] is 8, in the reference 0; 1 of 2 values of this row are beyond
    computed by $here/tiny.ra:9: h = E[word]
    agree at this node: total
different: 3 values are" "a leaf of a later tree comes before"
compare "$tmp/bad.safetensors" --format json
tap_is "$status,$out" '1,{"equal":false,"atol":1e-05,"rtol":1.3e-06,"form":"safetensors","trees":3,"compared":3,"tensors":[{"name":"h","kind":"state","at":"all","trees":3,"rows":9,"values":18,"beyond":3,"largest":{"difference":8,"tree":1,"node":4,"element":1,"ours":11,"theirs":19,"ulp":6815744}},{"name":"total","kind":"output","at":"root","trees":3,"rows":3,"values":3,"beyond":0,"largest":{"difference":0,"tree":0,"node":2,"element":0,"ours":10,"theirs":10,"ulp":0}}],"missing":["twice"],"unknown":[],"first":{"name":"h","tree":2,"node":0,"element":1,"ours":8,"theirs":0,"ulp":1090519040,"height":0,"beyond":1,"file":"'"$here"'/tiny.ra","line":9,"statement":"h = E[word]","children":[],"also":[]}}' "JSON says it as well"
compare "$tmp/good.safetensors" --format json
case $status,$out in
0,'{"equal":true,'*'"unknown":[]}') tap_ok 0 "and what is equal" ;;
*) tap_ok 1 "and what is equal" ;;
esac

run "$here/tiny.ra" "$tmp/trees" --export "$tmp/export.safetensors"
compare "$tmp/export.safetensors" --atol 0 --rtol 0
equal "what run exports at roots"
run "$here/tiny.ra" "$tmp/trees" --at all --export "$tmp/export.safetensors"
compare "$tmp/export.safetensors" --atol 0 --rtol 0
equal "what run exports at all nodes"
says "output total: 9 nodes of 3 trees, 9 values: the same" "with a row for each"
run "$here/tiny.ra" "$tmp/trees" --export "$tmp/export.npy" --tensor h
compare "$tmp/export.npy" --tensor h --atol 0 --rtol 0
equal "what run exports as an array"

# --- tolerance ---

reference ${h% 8} 10 >"$tmp/near.safetensors"
compare "$tmp/near.safetensors" --atol 2 --rtol 0
equal "a difference as large as the tolerance is none"
compare "$tmp/near.safetensors" --atol 1.99 --rtol 0
found "h[1] is 8, in the reference 10" "a larger one is"
compare "$tmp/near.safetensors" --atol 0 --rtol 0.2
equal "the tolerance grows with the reference"
compare "$tmp/near.safetensors" --atol 0 --rtol 0.19
found "h[1] is 8, in the reference 10" "not with what was computed"
compare "$tmp/good.safetensors" --atol 0 --rtol 0
equal "no tolerance at all"
for wrong in -1 x nan inf ''; do
	compare "$tmp/good.safetensors" --atol "$wrong"
	refused 2 "--atol is a number" "--atol '$wrong'"
done

# --- what is no number ---

model=$here/nan.ra
f32 nan nan nan nan nan nan | array 3,2 >"$tmp/nan.npy"
compare "$tmp/nan.npy" --at root --tensor root --atol 1000
equal "what is not a number in both is the same"
f32 nan nan nan 1 nan nan | array 3,2 >"$tmp/nan.npy"
compare "$tmp/nan.npy" --at root --tensor root --atol 1000
found "root[1] is nan, in the reference 1;" "a number in one of them is not"
f32 inf inf inf inf inf inf | array 3,2 >"$tmp/nan.npy"
compare "$tmp/nan.npy" --at root --tensor quotient
equal "infinity is the same as infinity"
f32 inf inf inf inf inf -inf | array 3,2 >"$tmp/nan.npy"
compare "$tmp/nan.npy" --at root --tensor quotient --atol 1000
found "quotient[1] is inf, in the reference -inf;" "but not as its opposite"
model=

# --- npy ---

f32 $total | array 9, >"$tmp/total.npy"
compare "$tmp/total.npy"
equal "an array is of the output that it fits"
f32 $total | npy "{\"fortran_order\":True,\"shape\":(9L,1),\"descr\":\"<f4\"}  " >"$tmp/other.npy"
compare "$tmp/other.npy"
equal "an array of Python 2, with an extent of one"
f32 $h | array '9, 2' >"$tmp/h.npy"
compare "$tmp/h.npy"
refused 1 "'h' and 'twice' have its shape: say which with --tensor NAME" "an array that fits more must be named"
compare "$tmp/h.npy" --tensor h
equal "an array that is named"
f32 1 3 5 1 3 5 5 10 7 2 4 5 2 4 5 6 11 8 |
	npy "{'descr': '<f4', 'fortran_order': True, 'shape': (9, 2), }" >"$tmp/fortran.npy"
compare "$tmp/fortran.npy" --tensor h
equal "an array by columns"
words $total | npy "{'descr': '<i4', 'fortran_order': False, 'shape': (9,), }" >"$tmp/other.npy"
compare "$tmp/other.npy"
equal "an array of integers"
{ printf '\223NUMPY\3\0\71\0\0\0' && printf %s "{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }" &&
	f32 $total; } >"$tmp/other.npy"
compare "$tmp/other.npy"
equal "an array of version 3"
f32 3 7 10 | array 3, >"$tmp/other.npy"
compare "$tmp/other.npy" --at all
equal "the nodes of the first tree"
compare "$tmp/other.npy"
refused 1 "'total' has 3 rows: of all roots with --at root, of the nodes of the first trees (1) with --at all" \
	"what could be both is not guessed"
printf '(2 (2 a) (2 b))\n(2 zz)\n' >"$tmp/two"
f32 10 15 | array 2, >"$tmp/two.npy"
esp compare "$here/tiny.ra" "$tmp/two" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter \
	--ref "$tmp/two.npy"
equal "as many rows as trees are their roots"
printf '(2 a)\n(2 zz)\n' >"$tmp/two"
f32 3 15 | array 2, >"$tmp/two.npy"
esp compare "$here/tiny.ra" "$tmp/two" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter \
	--ref "$tmp/two.npy"
equal "nodes that are all roots are the same either way"
f32 10 21 | array 2, >"$tmp/other.npy"
compare "$tmp/other.npy" --at root
equal "roots of the first trees"
compare "$tmp/other.npy"
refused 1 "has 2 rows, but $tmp/trees has 3 trees with 9 nodes" \
	"rows that are neither all roots nor nodes of whole trees"

# half DTYPE WORD...: total as 16-bit numbers.
half()
{
	dtype=$1
	shift
	for w in "$@"; do printf "\\$(printf %o $((w & 255)))\\$(printf %o $((w >> 8)))"; done |
		weights "{\"total\":{\"dtype\":\"$dtype\",\"shape\":[3],\"data_offsets\":[0,6]}}"
}
half F16 0x4900 0x4d40 0x4b80 >"$tmp/half"
compare "$tmp/half" --at root
equal "values as F16"
half BF16 0x4120 0x41a8 0x4170 >"$tmp/half"
compare "$tmp/half" --at root
equal "values as BF16"
half F16 0x7c00 0x0001 0xfe00 >"$tmp/half"
compare "$tmp/half" --at root --format json
says '"beyond":3' "infinity, the smallest number and none as F16"

# --- npz, and locals ---

model=$here/gates.ra
compare "$here/gates.npz"
equal "states, locals and outputs of an archive"
tap_is "$out" "local x: 6 nodes of 3 trees, 12 values: the same
state c: 9 nodes of 3 trees, 18 values: the same
state h: 9 nodes of 3 trees, 18 values: the same
local s: 3 nodes of 3 trees, 6 values: the same
local d: 3 nodes of 3 trees, 3 values: the same
output total: 3 roots of 3 trees, 3 values: the same
equal: no value is farther than 1e-05 + 1.3e-06 * |reference| from the reference" "locals are compared where they are computed"
compare "$here/gates-wrong.npz"
found "neither states, outputs nor comparable locals of the model: other

first difference, leaves before their parents: tree 1, node 4, height 2: a b C
    s[1] is 8, in the reference 4; 1 of 2 values of this row are beyond
    computed by $here/gates.ra:16: s = cross(left.c) + right.c
    its children agree in h, c: nodes 2, 3
    agree at this node: h
    differ at this node too: c, d
different: 4 values" "the first is the local that is computed first"
compare "$here/gates-wrong.npz" --tensor c
found "c[0] is -4, in the reference -2; 2 of 2 values of this row are beyond
    computed by $here/gates.ra:18: c = s - d" "--tensor compares one of an archive"
compare "$here/gates-wrong.npz" --tensor h
equal "and no other"
f32 2 4 6 8 7 7 2 4 6 8 7 7 10 12 3 6 14 16 | weights "{$(tensor h 9,2 0 72)}" >"$tmp/h.safetensors"
compare "$tmp/h.safetensors"
found "gates.ra:19: h = (c +
" "of a statement of two lines there is the first"
model=

cat >"$tmp/node.ra" <<'END'
model both
structure tree(left, right)
param E[V, D], W[D, D]
state h[D]
node :
    s = left.h + (
        right.h)
    h = W @ s + sum(transpose(E))
output total = sum(h)
END
# node S...: h and s of the first tree.
node()
{
	f32 16 20 16 20 56 52 "$@" | weights "{$(tensor h 3,2 0 24),$(tensor s 3,2 24 48)}" >"$tmp/node.safetensors"
	model=$tmp/node.ra
	compare "$tmp/node.safetensors" --at all
}
node 0 0 0 0 32 40
equal "a body for all nodes"
says "local s: 3 nodes of 1 tree, 6 values" "its locals are of all nodes"
node 0 0 1 0 32 41
found "tree 0, node 1, a leaf: b
    s[0] is 0, in the reference 1; 1 of 2 values of this row are beyond
    computed by $tmp/node.ra:6: s = left.h + (" "and differ in leaves"
f32 16 20 16 20 56 52 0 0 0 | weights "{$(tensor h 3,2 0 24),$(tensor s 3,1 24 36)}" >"$tmp/node.safetensors"
compare "$tmp/node.safetensors" --at all
equal "a local of another shape"
says "neither states, outputs nor comparable locals of the model: s" "is told of and left"
f32 16 20 16 20 56 52 0 0 0 0 32 40 | weights "{$(tensor h 3,2 0 24),$(tensor left 3,2 24 48)}" >"$tmp/node.safetensors"
compare "$tmp/node.safetensors" --at all
says "neither states, outputs nor comparable locals of the model: left" "names of other things are no locals"
model=$here/gates.ra

for n in 1 2 3 30 40 100 500 1000 1500 1990 2050 2070; do
	head -c $n "$here/gates.npz" >"$tmp/cut.npz"
	compare "$tmp/cut.npz"
	refused 1 "cut.npz: " "an archive of $n bytes"
done
# The archive's list stays as it is; a byte of the values of 'c' changes.
{ head -c 441 "$here/gates.npz" && printf '\1' && tail -c +443 "$here/gates.npz"; } >"$tmp/damaged.npz"
model=$here/gates.ra
compare "$tmp/damaged.npz"
refused 1 "is damaged" "an archive whose sums are wrong"
model=

# --- what does not fit ---

compare "$here/gates-wrong.npz" --tensor x
refused 1 "--tensor 'x': there is nothing of that name in $here/tiny.ra" "a tensor that the model does not have"
compare "$tmp/good.safetensors" --tensor twice
refused 1 "--tensor 'twice': there is nothing of that name in $tmp/good.safetensors" \
	"a tensor that the reference does not have"
f32 1 2 | weights "{$(tensor x 1,2 0 8)}" >"$tmp/none"
compare "$tmp/none"
refused 1 "nothing can be compared: none of its 1 tensors is named as a state or an output of the model, which are 'h', 'twice', 'total'" \
	"nothing in common is not equal"
printf '{}' >"$tmp/json"
printf '' | weights '{}      ' >"$tmp/none"
compare "$tmp/none"
refused 1 "nothing can be compared" "nothing at all is not equal"
compare "$tmp/json"
refused 1 "this is no reference" "a file of no known form"
f32 $h 0 0 0 0 0 0 0 0 0 | weights "{$(tensor h 9,3 0 108)}" >"$tmp/bad"
compare "$tmp/bad"
refused 1 "'h' is [9, 3], but the model's state 'h' is [rows, 2]" "a tensor of another shape"
f32 1 2 3 4 | array 1,2,2 >"$tmp/other.npy"
compare "$tmp/other.npy"
refused 1 "is [1, 2, 2], which fits no state or output" "an array that fits nothing"
printf '0 0 1 2 3\n' >"$tmp/bad"
compare "$tmp/bad"
refused 1 "is [1, 3], which fits no output of the model" "a text that fits nothing"
printf '' | array 0, >"$tmp/other.npy"
compare "$tmp/other.npy"
refused 1 "has no rows" "no rows"
f32 $total 1 | array 10, >"$tmp/other.npy"
compare "$tmp/other.npy"
refused 1 "has 10 rows, but" "more rows than nodes"
{ cat "$tmp/nodes.txt" && printf 'tree 3 1 2 0 1\n0 1\n'; } >"$tmp/more.txt"
compare "$tmp/more.txt"
refused 1 "has 4 trees, but $tmp/trees has 3 only" "more trees than the input"
sed 's/^tree 1 5 2 4 1/tree 1 4 2 3 1/; 8d' "$tmp/nodes.txt" >"$tmp/bad"
compare "$tmp/bad"
refused 1 "tree 1 has 4 nodes, but in $tmp/trees it has 5" "a tree of another size"
{ words 0 3 7 9 && f32 $h; } | weights "{$begin,$(tensor h 9,2 16 88)}" >"$tmp/bad"
compare "$tmp/bad"
refused 1 "tree 1 has 4 nodes, but" "nodes that begin elsewhere"
{ words 0 3 8 9 && f32 $h; } | weights "{$begin,$(tensor h 8,2 16 80)}" >"$tmp/bad"
compare "$tmp/bad"
refused 1 "'h' has 8 rows, but $tmp/bad has 3 trees with 9 nodes" "rows that are missing"
f32 0 3 8 9 | weights "{$(tensor structure_begin 4 0 16)}" >"$tmp/bad"
compare "$tmp/bad"
refused 1 "'structure_begin' must be a list of integers" "numbers of nodes that are not whole"
printf '' >"$tmp/empty"
esp compare "$here/tiny.ra" "$tmp/empty" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter \
	--ref "$tmp/good.safetensors"
refused 1 "the text holds no tree" "an input without trees"
compare "$tmp/empty"
refused 1 "this is no reference" "an empty reference"
compare "$tmp/absent"
refused 1 "cannot read '$tmp/absent': No such file or directory" "a reference that is not there"
compare "$tmp"
refused 1 "must be a regular file" "a folder as the reference"
esp compare "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors"
refused 2 "compare needs --weights FILE and --ref FILE" "a call without a reference"
esp compare "$here/tiny.ra" "$tmp/trees" --ref "$tmp/good.safetensors"
refused 2 "compare needs --weights FILE and --ref FILE" "a call without weights"
compare "$tmp/good.safetensors" --at leaf
refused 2 "--at is auto|root|all" "a place that there is not"

# --- hostile files ---

# text TEXT WHAT: a text that is refused with that.
text()
{
	printf "$1" >"$tmp/bad"
	compare "$tmp/bad"
	refused 1 "$2" "text: $2"
}
text 'tree 0 3 2 2 0\n1 2\n3 4\n' 'bad:4: the file ends after 2 of the 3 nodes of tree 0'
text 'tree 0 2147483647 2 2147483646 0\n1 2\n' 'bad:3: the file ends after 1 of the 2147483647'
text 'tree 0 9999999999 2 2 0\n' \
	"bad:1: expected a number of nodes, a number from 0 to 2147483647, at '9999999999 2 2 0"
text 'tree 0 -1 2 2 0\n' 'bad:1: expected a number of nodes'
text 'tree 0 0 2 0 0\n' 'bad:1: node 0 is the root of a tree of 0 nodes, which are numbered from 0'
text 'tree 0 3 2 3 0\n' 'bad:1: node 3 is the root of a tree of 3 nodes, which are numbered from 0'
text 'tree 0 3 2 1 0\n1 2\n3 4\n5 6\n' "bad: node 1 is the root of tree 0, but in $tmp/trees it is node 2"
text 'tree 0 1 0 0 0\n' 'bad:1: a tree without classes'
text 'tree 0 1 2 0 2\n' "bad:1: expected the root's class, a number from 0 to 1"
text 'tree 1 1 2 0 0\n1 2\n' 'bad:1: tree 1 follows after 0 trees'
text 'tree 0 1 2 0 0 7\n1 2\n' "bad:1: goes on after the root's class with '7"
text 'tree 0 1 2 0 0\n1 2\nstop\n' "bad:3: expected a line 'tree INDEX"
text 'tree 0 1 2 0 0\n1 2 3\n' 'bad:2: has 3 values where 2 are expected'
text 'tree 0 1 2 0 0\n1\n' 'bad:2: has 1 values where 2 are expected'
text 'tree 0 1 2 0 0\n1 x\033\n' "bad:2: expected a number at 'x?"
text 'tree 0 1 2 0 0\n1 2\ntree 1 1 3 0 0\n1 2 3\n' 'bad:3: tree 1 has 3 classes, the trees before have 2'
text 'tree 0 1 2 0 0\n1 2\0\n' 'bad:2: holds a zero byte'
text '0 2 10 10\n' 'bad:1: class 2 is none of the 2'
text '0 0 10 10\n0 0 1\n' 'bad:2: has 1 values where 2 are expected'
text '0 0\n' 'bad:1: has 0 values'
text '0 -1 1 2\n' 'bad:1: expected a class'

# header TEXT WHAT: an .npy header that is refused with that.
header()
{
	f32 $total | npy "$1" >"$tmp/bad"
	compare "$tmp/bad"
	refused 1 "$2" "npy: $1"
}
header "{'descr': '<f4', 'fortran_order': False, 'shape': (10,)}" \
	"36 bytes of values follow its header, where its shape needs 40"
header "{'descr': '<f4', 'fortran_order': False, 'shape': (8,)}" \
	"36 bytes of values follow its header, where its shape needs 32"
header "{'descr': '<f4', 'fortran_order': False, 'shape': (-9,)}" "cannot be read from '-9,)}' on"
header "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,4)}" "cannot be read from ',4)}' on"
header "{'descr': '<f4', 'fortran_order': False, 'shape': (536870912,2147483648)}" "cannot be read from ')}' on"
header "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}" "cannot be read from"
header "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,9)}" "cannot be read from"
header "{'descr': '<f4', 'fortran_order': False, 'shape': ()}" "where its shape needs 4"
header "{'descr': '<f4', 'fortran_order': False, 'shape': (9,), 'shape': (9,)}" "cannot be read from"
header "{'descr': '<f4', 'fortran_order': False}" "cannot be read from '' on"
header "{'descr': '<f4', 'fortran_order': 1, 'shape': (9,)}" "cannot be read from '1, "
header "{'descr': '>f4', 'fortran_order': False, 'shape': (9,)}" "values of type '>f4' are big-endian"
header "{'descr': '|O', 'fortran_order': False, 'shape': (9,)}" "values of type '|O' are not read"
header "{'descr': 'F32', 'fortran_order': False, 'shape': (9,)}" "values of type 'F32' are not read"
header "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (9,)}" "cannot be read from '[("
header "{'descr': '" "cannot be read from"
header "" "cannot be read from '' on"
printf '\223NUMPY\11\0\1\0 ' >"$tmp/bad"
compare "$tmp/bad"
refused 1 ".npy version 9 is not known" "npy: another version"
printf '\223NUMPY\2\0\377\377\377\377 ' >"$tmp/bad"
compare "$tmp/bad"
refused 1 "its .npy header has 4294967295 bytes" "npy: a header that is too long"

# entry TEXT WHAT: an entry of a safetensors header that is refused with that.
entry()
{
	f32 1 2 3 4 | weights "{\"h\":$1}" >"$tmp/bad"
	compare "$tmp/bad"
	refused 1 "$2" "safetensors: $1"
}
entry '{"dtype":"F32","shape":[2,2],"data_offsets":[0,20]}' "data_offsets that do not lie in the file"
entry '{"dtype":"F32","shape":[2,2],"data_offsets":[0,12]}' "do not fit its shape"
entry '{"dtype":"F32","shape":[2,2],"data_offsets":[-16,0]}' "data_offsets"
entry '{"dtype":"F32","shape":[2,2],"data_offsets":[16,0]}' "data_offsets"
entry '{"dtype":"F32","shape":[2,2],"data_offsets":[0]}' "data_offsets"
entry '{"dtype":"F32","shape":[2,2]}' "data_offsets"
entry '{"dtype":"F32","shape":[2,-2],"data_offsets":[0,16]}' "a shape that is no list of extents, or too large"
entry '{"dtype":"F32","shape":[4611686018427387905,4],"data_offsets":[0,16]}' "a shape that is no list"
entry '{"dtype":"F32","shape":2,"data_offsets":[0,16]}' "a shape that is no list"
entry '{"dtype":"<f4","shape":[2,2],"data_offsets":[0,16]}' "a type that cannot be compared"
entry '{"dtype":"U8","shape":[2,2],"data_offsets":[0,16]}' "a type that cannot be compared"
entry '7' "a type that cannot be compared"
entry '{"dtype":"F32"' "its header is no JSON"
entry '{},"h":{}' "its header is no JSON"
entry '{"dtype":"F32","shape":[],"data_offsets":[0,4]}' "'h' is [], but the model's state 'h' is [rows, 2]"
printf '\377\377\0\0\0\0\0\0{}' >"$tmp/bad"
compare "$tmp/bad"
refused 1 "says that its header has 65535 bytes, but the file has 2 after it" \
	"safetensors: a header that is longer than the file"

# cut FILE BYTES...: no part of a file is taken for the whole.
cut()
{
	file=$1
	size=$(wc -c <"$file")
	bad= step=7
	[ -z "$shadowed" ] || step=67
	for n in $(seq 1 $step $((size - 1))) $((size - 1)); do
		head -c "$n" "$file" >"$tmp/cut"
		compare "$tmp/cut"
		[ "$status" = 1 ] && [ -z "$out" ] && [ -n "$err" ] || bad="$bad $n"
	done
	tap_is "$bad" "" "no beginning of ${file##*/} is taken for the whole"
}
cut "$tmp/good.safetensors"
cut "$tmp/total.npy"

# --- structures whose nodes are not in post order ---

printf 'model words\nstructure tree(*)\ninput word : token\nparam E[V, D], W[D, D]\nstate h[D]\nnode:\n h = E[word] + W @ sum(k.h for k in children)\noutput y = h at root\n' >"$tmp/words.ra"
{
	printf '1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n2\tb\t_\tX\t_\t_\t1\t_\t_\t_\n3\tb\t_\tX\t_\t_\t1\t_\t_\t_\n\n'
	printf '1\tb\t_\tX\t_\t_\t0\t_\t_\t_\n2\ta\t_\tX\t_\t_\t1\t_\t_\t_\n3\ta\t_\tX\t_\t_\t2\t_\t_\t_\n\n'
} >"$tmp/words.conllu"
conllu=("$tmp/words.ra" "$tmp/words.conllu" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" \
	--backend interpreter)
esp run "${conllu[@]}" --export "$tmp/roots.safetensors"
esp compare "${conllu[@]}" --ref "$tmp/roots.safetensors" --atol 0 --rtol 0
equal "roots are where the structure has them"
f32 9 8 3 4 3 4 6 7 3 3 1 2 | array 6,2 >"$tmp/nodes.npy"
esp compare "${conllu[@]}" --at all --ref "$tmp/nodes.npy" --tensor y
equal "nodes are by their numbers"
printf 'tree 0 3 2 0 0\n9 8\n3 4\n3 4\ntree 1 3 2 0 1\n6 7\n3 3\n1 2\n' >"$tmp/first.txt"
esp compare "${conllu[@]}" --ref "$tmp/first.txt"
equal "a text whose roots are not the last nodes"
says "classes of the roots: 0 of 2 differ" "its classes are those of the roots"
f32 9 7 3 4 3 4 6 7 3 3 1 2 | array 6,2 >"$tmp/nodes.npy"
esp compare "${conllu[@]}" --at all --ref "$tmp/nodes.npy" --tensor y
found "tree 0, node 0, height 1: a b b
    y[1] is 8, in the reference 7" "a parent that stands before its children is above them, its words those of the sentence"
f32 9 8 3 4 3 4 6 8 3 2 1 2 | array 6,2 >"$tmp/nodes.npy"
esp compare "${conllu[@]}" --at all --ref "$tmp/nodes.npy" --tensor y
found "tree 1, node 1, height 1: b a a" "and what is below it comes first"
printf 'model down\nstructure tree(*)\ninput word : token\nparam E[V, D], W[D, D]\nstate h[D]\nnode:\n h = E[word]\ntraversal down\nstate g[D]\nroot:\n g = h\nbelow:\n g = h + W @ parent.g\noutput y = g at every node\n' >"$tmp/words.ra"
f32 1 2 5 5 5 4 3 4 5 5 6 7 | array 6,2 >"$tmp/nodes.npy"
esp compare "${conllu[@]}" --at all --ref "$tmp/nodes.npy" --tensor g
found "computed by $tmp/words.ra:13: g = h + W @ parent.g" "a state that goes down has its statement too"
f32 0 2 5 5 5 5 3 4 5 5 6 7 | array 6,2 >"$tmp/nodes.npy"
esp compare "${conllu[@]}" --at all --ref "$tmp/nodes.npy" --tensor g
found "computed by $tmp/words.ra:11: g = h" "which is another one for the root"

# --- locals of cases and of traversals ---

# both MODEL TENSOR VALUES...: compares the model over both sentences with tensors of a row of two for each node.
both()
{
	text=$1 header= at=0
	shift
	: >"$tmp/values"
	while [ $# -gt 0 ]; do
		header=$header${header:+,}$(tensor "$1" "${3:-6,2}" $at $((at + 4 * $(echo $2 | wc -w))))
		at=$((at + 4 * $(echo $2 | wc -w)))
		f32 $2 >>"$tmp/values"
		shift 3
	done
	weights "{$header}" <"$tmp/values" >"$tmp/both.safetensors"
	esp compare "$text" "${conllu[@]:1}" --ref "$tmp/both.safetensors"
}
cat >"$tmp/cased.ra" <<'END'
model cased
structure tree(*)
input word : token
param E[V, D], W[D, D]
state h[D]
case one = inner when children == 1
leaf:
    x = E[word]
    h = x
one:
    x = W @ children[0].h
    h = x + E[word]
inner:
    x = concat(E[word], E[word])
    s = sum(k.h for k in children)
    h = W @ s + 0 * x[:D]
output y = h at every node
END
h='8 6 3 4 3 4 6 7 3 3 1 2' x='0 0 3 4 3 4 3 3 2 1 1 2' s='6 8 0 0 0 0 0 0 0 0 0 0'
both "$tmp/cased.ra" h "$h" '' x "$x" '' s "$s" ''
equal "locals of cases"
says "local x: 5 nodes of 2 trees, 10 values: the same" "one is of the bodies where it has the shape"
says "local s: 1 nodes of 2 trees" "another is of one body"
both "$tmp/cased.ra" h "$h" '' x '1 2 1 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0' 6,4
says "local x: 1 nodes of 2 trees, 4 values: the same" "and where it has another"
both "$tmp/cased.ra" h "${h/3 3 1 2/3 5 1 2}" ''
found "computed by $tmp/cased.ra:12: h = x + E[word]" "the statement is that of the node's case"
both "$tmp/cased.ra" h "${h/8 6/8 7}" ''
found "computed by $tmp/cased.ra:16: h = W @ s" "or of nodes of no case"
both "$tmp/cased.ra" h "${h/3 3 1 2/3 5 1 2}" '' x "${x/2 1 1 2/2 3 1 2}" ''
found "x[1] is 1, in the reference 3; 1 of 2 values of this row are beyond
    computed by $tmp/cased.ra:11: x = W @ children[0].h" "so is that of a local"

cat >"$tmp/twice.ra" <<'END'
model twice
structure tree(*)
input word : token
param E[V, D], W[D, D]
state h[D]
node:
    a = E[word] + sum(k.h for k in children)
    h = W @ a
traversal down
state g[D]
root:
    a = h
    g = a
below:
    a = W @ parent.g
    b = a + h
    g = b
output y = g at every node
END
h='8 9 4 3 4 3 7 6 3 3 2 1' g='8 9 13 11 13 11 7 6 9 10 12 10'
up='9 8 3 4 3 4 6 7 3 3 1 2' down='8 9 9 8 9 8 7 6 6 7 10 9' b='0 0 13 11 13 11 0 0 9 10 12 10'
both "$tmp/twice.ra" h "$h" '' g "$g" '' a.1 "$up" '' a.2 "$down" '' b "$b" '' y "$g" ''
equal "locals of two traversals"
says "local a.2: 6 nodes of 2 trees, 12 values: the same" "the number of the traversal tells them apart"
says "local b: 4 nodes of 2 trees" "one of a single traversal needs none"
both "$tmp/twice.ra" h "$h" '' a "$up" ''
says "neither states, outputs nor comparable locals of the model: a" "without it, it is told that none is meant"
both "$tmp/twice.ra" h "$h" '' g "${g/9 10 12 10/9 12 12 12}" '' y "${g/9 10 12 10/9 12 12 12}" ''
found "first difference, parents before their children: tree 1, node 1, depth 1: b a a
    g[1] is 10, in the reference 12; 1 of 2 values of this row are beyond
    computed by $tmp/twice.ra:17: g = b
    its parents agree in h, g, y: nodes 0
    agree at this node: h
    differ at this node too: y" "what goes down begins above"
both "$tmp/twice.ra" h "${h/8 9/8 8}" '' g "${g/13 11/13 12}" '' a.2 "${down/8 9/8 8}" ''
found "first difference, leaves before their parents: tree 0, node 0, height 1: a b b
    h[1] is 9, in the reference 8; 1 of 2 values of this row are beyond
    computed by $tmp/twice.ra:8: h = W @ a" "and after all that went up"
both "$tmp/twice.ra" h "$h" '' a.2 "${down/8 9/8 8}" ''
found "tree 0, node 0, without a parent: a b b
    a.2[1] is 9, in the reference 8; 1 of 2 values of this row are beyond
    computed by $tmp/twice.ra:12: a = h" "roots have statements of their own"
both "$tmp/twice.ra" g "${g/13 11/13 12}" ''
esp compare "$tmp/twice.ra" "${conllu[@]:1}" --ref "$tmp/both.safetensors" --format json
says '"depth":1,"beyond":1,"file":"'"$tmp"'/twice.ra","line":17,"statement":"g = b","parents":[0],"also":[]' \
	"JSON has depths and parents"

# --- bounds of integers and bf16 ---

sentences="$example/treelstm.ra $example/sentences.ptb --weights $example/sst-treelstm-small.safetensors --vocab $example/sst-vocab.txt --backend interpreter"
esp run $sentences --at all --export "$tmp/f32.safetensors"
esp compare $sentences --ref "$tmp/f32.safetensors"
says "equal:" "f32 is that of the run"
case $out in *"from f32"*) tap_ok 1 "f32 has no bound" ;; *) tap_ok 0 "f32 has no bound" ;; esac
esp compare $sentences --precision i16 --ref "$tmp/f32.safetensors" --atol 0.01 --tensor h
says "products in i16 may take it at most 2 from f32" "the bound stands beside the difference"
esp compare $sentences --precision bf16 --ref "$tmp/f32.safetensors" --atol 1 --tensor h
says "products in bf16 may take it at most 2 from f32" "it names the precision"
sed 's/^param node\.U_.*\]$/& products i16/' "$example/treelstm.ra" >"$tmp/declared.ra"
esp compare "$tmp/declared.ra" ${sentences#* } --ref "$tmp/f32.safetensors" --atol 1 --tensor h
says "products in the precisions that the model and the weights ask for may take it at most" "what the model declares has a bound without the option"
esp compare $sentences --precision i16 --ref "$tmp/f32.safetensors" --atol 0.01 --format json
tap_is "$(grep -o '"bound":' <<<"$out" | wc -l)" 4 "JSON has one for each state and output"
tap_ok "$(grep -oE '"difference":[0-9.e-]+|"bound":[0-9.e+]+' <<<"$out" | sed "s/.*://" | paste - - | awk '$1 > $2 { bad = 1 } END { print bad + 0 }')" \
	"no difference is larger than its bound"

# --- real references ---

data=${ESPALIER_DATA:-$srcdir/../shared/data}
if [ ! -d "$data/golden" ]; then
	tap_skip "no data" "references of trained models"
	tap_done
fi
# golden MODEL INPUT REFERENCE COVERED
golden()
{
	esp compare "$example/treelstm.ra" "$data/sst/$2" --weights "$data/models/$1.safetensors" \
		--vocab "$data/models/sst-vocab.txt" --ref "$data/golden/$3" --backend "${backend:-interpreter}"
	equal "$3"
	says "$4" "$3: $4"
}
golden sst-treelstm test-a.txt sst-treelstm-test-a-200.txt "the first 200 of 1105 trees"
golden sst-treelstm test-a.txt sst-treelstm-test-a-roots.txt "0 of 1105 differ"
golden sst-treelstm-small dev.txt sst-treelstm-small-dev100.txt "the first 100 of 1101 trees"
golden sst-treelstm-small dev.txt sst-treelstm-small-dev-roots.txt "0 of 1101 differ"
tap_done
