# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Weights as save_file(module.state_dict(), FILE) of PyTorch writes them: models whose parameters have the names of the
# module's keys take them as they are.
. "${srcdir:-.}/tests/cli/support.sh"

# state_dict KEY SHAPE...: a file with these tensors, of zeros.
state_dict()
{
	local header= at=0 size n
	while [ $# -gt 0 ]; do
		size=4
		for n in ${2//,/ }; do size=$((size * n)); done
		header=$header${header:+,}"\"$1\":{\"dtype\":\"F32\",\"shape\":[$2],\"data_offsets\":[$at,$((at + size))]}"
		at=$((at + size))
		shift 2
	done
	head -c $at /dev/zero | weights "{$header}" >"$tmp/w.safetensors"
}

# accepted MODEL: it takes that file.
accepted()
{
	esp check "$1" --weights "$tmp/w.safetensors"
	case $status,$err in 0,) tap_ok 0 "${1##*/}" ;; *) tap_ok 1 "${1##*/}" && show ;; esac
}

# layer PREFIX SUFFIX INPUTS GATES: the keys of one direction of a layer with 3 units, or 3 gates of them.
layer()
{
	printf '%s %s ' "$1weight_ih_$2" "$((3 * $4)),$3" "$1weight_hh_$2" "$((3 * $4)),3" "$1bias_ih_$2" $((3 * $4)) \
		"$1bias_hh_$2" $((3 * $4))
}

state_dict embedding.weight 7,5 $(layer lstm. l0 5 4) output.weight 2,3 output.bias 2
accepted "$srcdir/examples/lstm/lstm.ra"
state_dict embedding.weight 7,5 $(layer lstm. l0 5 4) $(layer lstm. l0_reverse 5 4) output.weight 2,6 output.bias 2
accepted "$srcdir/examples/bilstm/bilstm.ra"
state_dict $(layer '' l0 5 4) $(layer '' l0_reverse 5 4) $(layer '' l1 6 4) $(layer '' l1_reverse 6 4)
accepted "$srcdir/examples/bilstm/bilstm2.ra"
state_dict embedding.weight 7,5 $(layer lstm. l0 5 4) $(layer lstm. l1 3 4) output.weight 2,3 output.bias 2
accepted "$srcdir/examples/stacked/stacked-lstm.ra"
state_dict $(layer '' l0 5 3)
accepted "$srcdir/examples/gru/gru.ra"
state_dict $(layer '' l0 5 3) $(layer '' l1 3 3)
accepted "$srcdir/examples/stacked/stacked-gru.ra"
cat >"$tmp/tree_rnn.ra" <<'END'
model tree_rnn
structure tree(left, right)
input word : token
param embedding.weight[V, D]
param left.weight[D, D], left.bias[D], right.weight[D, D], output.weight[5, D], output.bias[5]
state h[D]
leaf:
    h = embedding.weight[word]
inner:
    h = tanh(left.weight @ left.h + left.bias + right.weight @ right.h)
output sentiment = softmax(output.weight @ h + output.bias) at root
END
state_dict embedding.weight 7,3 left.weight 3,3 left.bias 3 right.weight 3,3 output.weight 5,3 output.bias 5
accepted "$tmp/tree_rnn.ra"

# --- the same from PyTorch itself, where it is installed ---

if ! python3 -c 'import torch, safetensors.torch' 2>/dev/null; then
	for model in tree_rnn lstm bilstm gru; do tap_skip "no PyTorch with safetensors" \
		"$model: results are those of PyTorch"; done
	tap_done
fi
printf '<unk>\na\nb\nc\nd\ne\nf\n' >"$tmp/words"
echo '(2 (2 (2 a) (2 f)) (2 (2 b) (2 (2 c) (2 d))))' >"$tmp/tree"
echo '{"children":[[],[0],[1],[2]],"data":{"word":[1,4,2,6],"x":[[1,2,3,4,5],[0,0,1,0,0],[5,4,3,2,1],[1,1,1,1,1]]}}' >"$tmp/sequence.json"
python3 - "$tmp" <<'END'
import sys, torch
from torch import nn
from safetensors.torch import save_file

folder = sys.argv[1]
torch.manual_seed(1)
word = torch.tensor([1, 4, 2, 6])
x = torch.tensor([[1.0, 2, 3, 4, 5], [0, 0, 1, 0, 0], [5, 4, 3, 2, 1], [1, 1, 1, 1, 1]])


def save(name, module, **results):
    save_file(module.state_dict(), f"{folder}/{name}.safetensors")
    save_file({k: v.detach().contiguous() for k, v in results.items()}, f"{folder}/{name}-ref.safetensors")


def tree_rnn():
    m = nn.ModuleDict({"embedding": nn.Embedding(7, 3), "left": nn.Linear(3, 3), "right": nn.Linear(3, 3, bias=False),
                       "output": nn.Linear(3, 5)})
    node = lambda t: m["embedding"].weight[t] if isinstance(t, int) else torch.tanh(
        m["left"](node(t[0])) + m["right"](node(t[1])))
    save("tree_rnn", m, sentiment=torch.softmax(m["output"](node(((1, 6), (2, (3, 4))))), 0)[None])


def lstm(name, both):
    m = nn.ModuleDict({"embedding": nn.Embedding(7, 5), "lstm": nn.LSTM(5, 3, bidirectional=both),
                       "output": nn.Linear(6 if both else 3, 2)})
    h = m["lstm"](m["embedding"](word))[0]
    logits = m["output"](h)
    save(name, m, logits=logits if both else logits[-1:])


tree_rnn()
lstm("lstm", False)
lstm("bilstm", True)
gru = nn.GRU(5, 3)
save("gru", gru, h=gru(x)[0])
END

# same MODEL INPUT ARGUMENT...: what it computes is what PyTorch did.
same()
{
	name=${1##*/}
	name=${name%.ra}
	esp compare "$@" --weights "$tmp/$name.safetensors" --vocab "$tmp/words" --ref "$tmp/$name-ref.safetensors" \
		--backend interpreter
	case $status,$err,$out in 0,,*equal:*) tap_ok 0 "$name: results are those of PyTorch" ;;
	*) tap_ok 1 "$name: results are those of PyTorch" && show && echo "# $out" ;; esac
}
same "$tmp/tree_rnn.ra" "$tmp/tree"
same "$srcdir/examples/lstm/lstm.ra" "$tmp/sequence.json" --at root
same "$srcdir/examples/bilstm/bilstm.ra" "$tmp/sequence.json"
same "$srcdir/examples/gru/gru.ra" "$tmp/sequence.json"
tap_done
