# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Whole modules over sequences: each is compared with PyTorch by `compile` over 1, 2 and 6 elements."""
import pytest

torch = pytest.importorskip("torch", minversion="2.10")
nn = torch.nn

import cells

import espalier.torch


def compile(*given, **options):
    torch.manual_seed(0)
    return espalier.torch.compile(*given, "sequence", backend="interpreter", **options)


def test_tagger_of_two_layers_in_both_directions():
    net = cells.Tagger(num_layers=2, bidirectional=True, batch_first=True).eval()
    model = compile(net, arguments={"words": "word[1, nodes] : token"}, outputs="tags")
    assert [line for line in model.text.split("\n") if line.startswith("traversal")] == [
        "traversal down", "traversal up", "traversal down"]
    assert "output tags = out.weight @ concat(rnn.h_l1, rnn.h_l1_reverse) + out.bias at every node" in model.text
    assert list(model([{"word": 3, "children": []}])["tags"].shape) == [1, 3]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", [{"num_layers": 2, "bias": False}, {"bidirectional": True, "batch_first": True}])
def test_whole_layers_with_their_last_states(kind, options):
    net = kind(5, 4, **options).eval()
    names = ["all", "h", "c"] if kind is nn.LSTM else ["all", "h"]
    shape = "x[1, nodes, 5]" if options.get("batch_first") else "x[nodes, 1, 5]"
    model = compile(net, arguments={"input": shape, **({} if kind is nn.GRU else {"hx": None})}, outputs=names)
    assert [o.at_root for o in model.outputs] == [False] + [True] * (len(names) - 1)


def test_relu_and_a_given_initial_state():
    net = nn.RNN(5, 4, nonlinearity="relu").eval()
    net.start = nn.Parameter(torch.randn(1, 1, 4))
    compile(lambda x: net(x, net.start)[0], arguments={"x": "x[nodes, 1, 5]"}, module=net)


def test_last_states_of_both_directions_classify():
    net = cells.Tagger(num_layers=2, bidirectional=True).eval()
    model = compile(lambda w: net.out(torch.cat(list(net.rnn(net.emb(w))[1][0][-2:]), 1)), module=net,
                    arguments={"w": "word[nodes, 1] : token"})
    assert "rnn.h_l1_reverse_last" in model.text and "h_l0_reverse_last" not in model.text


def test_outputs_read_inputs_first_and_last_nodes_and_sums():
    net = nn.ModuleDict({"g": nn.GRU(4, 4, batch_first=True), "n": nn.LayerNorm(4)}).eval()

    def network(x):
        y = net["n"](x + net["g"](x)[0])
        return y, y[:, 0], y[:, -1].tanh(), y.mean(1), (torch.softmax(y.sum(-1, keepdim=True), 1) * y).sum(1)
    model = compile(network, arguments={"x": "x[1, nodes, 4]"}, module=net,
                    outputs=["each", "first", "last", "mean", "read"])
    assert model.text.count("traversal up") == 1
