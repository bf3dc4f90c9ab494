# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The dependency model with a matrix for each label, from CoNLL-U to its outputs: labels of the tree, of the enhanced
# graph, and of the
# same structures in JSON, against the equations in awk. States have one element.
. "${srcdir:-.}/tests/cli/support.sh"

matrix=$srcdir/examples/labelled/matrix.ra
sed 's/structure tree/structure dag/' "$matrix" >"$tmp/graph.ra"
printf 'he\nplays\nher\n<unk>\n' >"$tmp/forms"
printf 'nsubj\nobj\n<unk>\n' >"$tmp/rels"

# tensor NAME SHAPE VALUE...: adds to the header and to the values of the file of weights, and to what awk knows by
# NAME.
header='' at=0 values=() known=()
tensor()
{
	local name=$1 shape=$2
	shift 2
	header+="${header:+,}\"$name\":{\"dtype\":\"F32\",\"shape\":[$shape],\"data_offsets\":[$at,$((at + 4 * $#))]}"
	at=$((at + 4 * $#))
	values+=("$@")
	known+=(-v "${name//./_}=$*")
}
tensor embedding.weight 4,1 .5 1 2 0
tensor W_i 1,1 1
tensor W_f 1,1 .5
tensor W_o 1,1 0
tensor W_u 1,1 .5
tensor U_i 3,1,1 1 2 .5
tensor U_f 3,1,1 2 0 1
tensor U_o 3,1,1 .5 1 2
tensor U_u 3,1,1 0 1 .5
tensor b_i 1 0
tensor b_f 1 .5
tensor b_o 1 1
tensor b_u 1 .5
tensor output.weight 1,1 2
tensor output.bias 1 1
floats "${values[@]}" | weights "{$header}" >"$tmp/labels.safetensors"

# equations NODE...: the logit of the last node, each being WORD:LABEL>CHILD,LABEL>CHILD and after its children; numbers
# count from 1.
equations()
{
	printf '%s\n' "$@" | awk -F : "${known[@]}" '
		function of(list, i, part) { split(list, part, " "); return part[i] }
		function logistic(x) { return 1 / (1 + exp(-x)) }
		function tanh(x) { return 2 * logistic(2 * x) - 1 }
		{
			x = of(embedding_weight, $1)
			i = W_i * x + b_i; o = W_o * x + b_o; u = W_u * x + b_u; kept = 0
			edges = split($2, edge, ",")
			for (e = 1; e <= edges; e++) {
				split(edge[e], end, ">")
				i += of(U_i, end[1]) * h[end[2]]; o += of(U_o, end[1]) * h[end[2]]; u += of(U_u, end[1]) * h[end[2]]
				kept += logistic(W_f * x + b_f + of(U_f, end[1]) * h[end[2]]) * c[end[2]]
			}
			c[NR] = logistic(i) * tanh(u) + kept
			h[NR] = logistic(o) * tanh(c[NR])
		}
		END { printf "%.9f\n", output_weight * h[NR] + output_bias }'
}

# logit MODEL FILE ARGUMENT...: of the first structure.
logit()
{
	esp run "$@" --weights "$tmp/labels.safetensors" --vocab "word=$tmp/forms" --vocab "rel=$tmp/rels" \
		--backend interpreter --format json
	out=$(head -n 1 <<<"$out" | sed -e 's/.*logits":\[//' -e 's/\].*//')
}

# is EXPECTED TEXT: the logit that the last command wrote is this one, to single precision.
is()
{
	local same
	same=$(awk -v a="$out" -v b="$1" 'BEGIN { d = a - b; print (a != "" && d < 1e-6 && d > -1e-6) }')
	tap_is "$status,$same" "0,1" "$2"
	[ "$same" = 1 ] || printf '# found %s, expected %s\n' "$out" "$1"
}

row()
{
	printf '%s\t%s\t_\tX\t_\t_\t%s\t%s\t%s\t_\n' "$@"
}
{
	row 1 He 2 nsubj 2:nsubj
	row 2 plays 0 root 0:root
	row 3 her 2 obj:x '2:obj|1:nsubj'
	echo
} >"$tmp/one.conllu"

logit "$matrix" "$tmp/one.conllu" --cut-labels
tree=$out
is "$(equations 1: 3: '2:1>1,2>2')" "relations choose the matrix of an edge"
logit "$matrix" "$tmp/one.conllu"
is "$(equations 1: 3: '2:1>1,3>2')" "one that is unknown has a matrix of its own"
tap_is "$([ "$tree" != "$out" ] && echo other)" other "which gives another result"
logit "$tmp/graph.ra" "$tmp/one.conllu" --graph enhanced
is "$(equations 3: '1:1>1' '2:1>2,2>1')" "in the enhanced graph a word has the label of each of its heads"

printf '{"children": [[], [0, 2], []], "data": {"word": ["he", "plays", "her"], "rel": [[], ["nsubj", "obj"], []]}, "root": 1}\n' >"$tmp/tree.jsonl"
printf '{"children": [[2], [0, 2], []], "data": {"word": [0, 1, 2], "rel": [[0], [0, 1], []]}, "root": 1}\n' >"$tmp/graph.jsonl"
enhanced=$out
logit "$matrix" "$tmp/tree.jsonl"
tap_is "$status,$out" "0,$tree" "the tree in JSON gives the same digits"
logit "$tmp/graph.ra" "$tmp/graph.jsonl"
tap_is "$status,$out" "0,$enhanced" "and so does the graph"
printf '{"children": [[], [0, 2], []], "data": {"word": [0, 1, 2], "rel": [[], [0, 3], []]}, "root": 1}\n' >"$tmp/outside.jsonl"
logit "$matrix" "$tmp/outside.jsonl"
refused 1 rel "a label that has no matrix is refused"
tap_done
