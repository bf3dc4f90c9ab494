# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Cells at one node: what `compile` hands out was compared with PyTorch on several structures (check.py), which
test_check.py proves to find differences; here, that it does hand them out, and their texts."""
import pytest

torch = pytest.importorskip("torch", minversion="2.10")
nn, F = torch.nn, torch.nn.functional

import cells

import espalier.torch

OPTIONS = {"backend": "interpreter"}


def compile(*given, **options):
    torch.manual_seed(0)
    return espalier.torch.compile(*given, **options, **OPTIONS)


def body(model, name):
    """The statements of a body of a model's text."""
    lines = iter(model.text.split("\n"))
    for line in lines:
        if line == f"{name}:":
            break
    found = []
    for line in lines:
        if not line.startswith("    "):
            break
        found.append(line.strip())
    return found


@pytest.fixture(scope="module")
def childsum():
    net = cells.ChildSum().eval()
    return compile(net.node, "tree(*)", {"x": "emb.weight[word][1, 6]", "child_c": "children.c", "child_h": "children.h"},
                   "c[4], h[4]", leaf="zeros", outputs={"logits": (net.out, "h")})


def test_child_sum_reads_as_by_hand(childsum):
    assert "structure tree(*)" in childsum.text
    assert body(childsum, "inner")[2:] == [
        "c = sigmoid(t3[0:4]) * tanh(t3[8:12]) + sum(sigmoid(forget_h.weight @ k.h + forget_h.bias + "
        "(forget_x.weight @ t2 + forget_x.bias)) * k.c for k in children)",
        "h = sigmoid(t3[4:8]) * tanh(c)"]
    assert "children" not in "".join(body(childsum, "leaf"))
    assert "output logits = out.weight @ h + out.bias at root" in childsum.text


def test_a_model_runs_and_is_loaded_again_from_its_text(childsum):
    tree = {"word": 3, "children": [{"word": 1, "children": []}, {"word": 4, "children": []}]}
    again = espalier.load(childsum.text, childsum.weights, **OPTIONS)
    assert (again([tree])["logits"] == childsum([tree])["logits"]).all()
    assert sorted(childsum.weights) == sorted(k for k in cells.ChildSum().state_dict())


def test_views_of_two_children_become_slices():
    net = cells.Mailbox().eval()
    model = compile(net.inner, "tree(2)", {"h": "children.h[1, 2, 4]", "c": "children.c[1, 2, 4]"}, "h[4], c[4]",
                    leaf=espalier.torch.leaf(net.leaf, {"x": "emb.weight[word][1, 6]"}),
                    outputs={"logits": espalier.torch.output(net.out, "h", at="every node", labels=["a", "b", "c"])})
    assert body(model, "inner") == [
        "t2 = concat(children[0].h, children[1].h)",
        "t3 = iou_h.weight @ t2 + bias[0]",
        "t4 = sigmoid(forget.weight @ t2 + forget.bias)",
        "c = sigmoid(t3[0:4]) * tanh(t3[8:12]) + (t4[0:4] * children[0].c + t4[4:8] * children[1].c)",
        "h = sigmoid(t3[4:8]) * tanh(c)"]
    assert model.outputs[0].labels == ("a", "b", "c")


def test_softmax_over_children_is_written_out():
    net = cells.Attention().eval()
    model = compile(net, "tree(*)", {"x": "emb.weight[word][1, 6]", "child_h": "children.h"}, "h[4]",
                    outputs={"y": (net.out, "h"), "largest": (lambda h: h.amax(0), "nodes.h")})
    assert "max(t3 @ tanh(key.weight @ k.h + key.bias) for k in children)" in model.text
    assert "output largest = max(k.h for k in nodes) at root" in model.text


def test_products_with_all_children_are_sums():
    net = nn.ModuleDict({"q": nn.Linear(4, 4)}).eval()

    def cell(x, h):
        near = torch.softmax((h @ net["q"].weight) @ x, -1) @ h
        every = torch.cat([x[None], h])
        return torch.tanh(near + every.mean(0) + h.max(0).values / (len(h) + 1) + torch.einsum("nd,d->n", h, x) @ h)
    model = compile(cell, "tree(*)", {"x": "x[4]", "h": "children.h"}, "h[4]", module=net,
                    leaf=espalier.torch.leaf(lambda x: x, {"x": "x[4]"}))
    assert "sum(1 for k in children)" in model.text


def test_heads_of_attention_on_children():
    net = nn.ModuleDict({n: nn.Linear(4, 4) for n in "qkv"}).eval()

    def heads(x):
        return x.view(-1, 2, 2).transpose(0, 1)

    def cell(x, h):
        weight = torch.softmax(heads(net["q"](x)) @ heads(net["k"](h)).transpose(-1, -2) / 2, -1)
        return (weight @ heads(net["v"](h))).transpose(0, 1).reshape(1, 4)
    compile(cell, "tree(*)", {"x": "x[1, 4]", "h": "children.h"}, "h[4]", module=net,
            leaf=espalier.torch.leaf(lambda x: x, {"x": "x[1, 4]"}))


def test_named_children_tuples_numbers_and_matrices():
    net = nn.ModuleDict({"b": nn.Bilinear(4, 4, 4), "n": nn.LayerNorm(4)}).eval()

    def cell(pair, factor, m):
        left, right = pair
        return net["n"](net["b"](left, right) * factor), torch.einsum("ij,jk->ik", *m)
    model = compile(cell, "tree(left, right)",
                    {"pair": ("left.h[1, 4]", "right.h[1, 4]"), "factor": 2.0, "m": ("left.m", "right.m")}, "h[4], m[3, 3]",
                    module=net, leaf=espalier.torch.leaf(lambda x, m: (x, m), {"x": "x[4]", "m": "matrix[3, 3]"}),
                    outputs={"p": (lambda h: F.log_softmax(h, -1), "h"), "top": "h"})
    assert "m = left.m @ right.m" in model.text


def test_sequences_and_graphs():
    cell = nn.LSTMCell(3, 4).eval()
    model = compile(lambda x, h, c: cell(x, (h, c)), "sequence", {"x": "x[1, 3]", "h": "previous.h[1, 4]", "c": "previous.c[1, 4]"},
                    "h[4], c[4]", module=cell)
    assert "previous.h" in model.text
    lin = nn.Linear(4, 4).eval()
    compile(lambda x, h: torch.relu(lin(h).sum(0) + x), "dag(*)", {"x": "x[4]", "h": "children.h"}, "h[4]", module=lin)


def test_types_and_conditions():
    def cell(x, kind, mask, h):
        return torch.where(kind > 1, x, -x) * (kind.float() + 1).clamp(0, 2) + mask * h.sum(0) + x.masked_fill(x > 0, 0.5)
    compile(cell, "tree(*)", {"x": "x[4]", "kind": "kind : i32", "mask": "mask[4] : bool", "h": "children.h"}, "h[4]",
            module=nn.Identity().eval())


def test_leaves_are_traced_by_themselves():
    def cell(x, h):
        return x if len(h) == 0 else h.amax(0) - x
    model = compile(cell, "tree(*)", {"x": "x[4]", "h": "children.h"}, "h[4]", module=nn.Identity().eval())
    assert body(model, "leaf") == ["h = x"]


def test_operators_in_place_and_decomposed():
    def cell(x, h):
        s = x * torch.tensor([1.0, 2, 3, 4])
        s += h.sum(0)
        F.relu_(s)
        return F.normalize(x, dim=0) + F.selu(x) + F.glu(torch.cat([x, s])).var() + x.pow(3)
    compile(cell, "tree(*)", {"x": "x[4]", "h": "children.h"}, "h[4]", module=nn.Identity().eval())


def test_batch_norm_by_running_statistics():
    net = nn.BatchNorm1d(4).eval()
    net.running_mean.normal_()
    compile(lambda x, h: net(F.selu(x) + h.sum(0, keepdim=True)), "tree(*)", {"x": "x[1, 4]", "h": "children.h"}, "h[4]", module=net)


def test_a_parameter_that_has_the_name_of_a_state():
    net = nn.ParameterDict({"h": nn.Parameter(torch.randn(4))}).eval()
    model = compile(lambda x, h: x * net["h"] + h.sum(0), "tree(*)", {"x": "x[4]", "h": "children.h"}, "h[4]", module=net)
    assert list(model.weights) == ["p.h"]


def test_what_edges_carry_is_a_state_of_the_child():
    def cell(x, r, child_h, child_r):
        return torch.tanh(x + (child_h * child_r).sum(0)), r

    arguments = {"x": "x[4]", "r": "rel[4]", "child_h": "children.h", "child_r": "children.r"}
    model = compile(cell, "tree(*)", arguments, "h[4], r[4]", module=nn.Linear(1, 1).eval())
    assert "sum(k.h * k.r for k in children)" in model.text
