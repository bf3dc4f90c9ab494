# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Every operator of the table: each expression is a state of one cell, which `compile` compares with PyTorch."""
import os
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", minversion="2.10")
nn, F = torch.nn, torch.nn.functional

import espalier.torch
from espalier.torch import OPERATORS, lower

torch.manual_seed(0)
W, B = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(1, 4))
CELLS = nn.ModuleDict({"gru": nn.GRUCell(4, 4), "lstm": nn.LSTMCell(4, 4), "tanh": nn.RNNCell(4, 4),
                       "relu": nn.RNNCell(4, 4, nonlinearity="relu"), "norm": nn.LayerNorm(4), "batch": nn.BatchNorm1d(4),
                       "bilinear": nn.Bilinear(4, 4, 4), "words": nn.Embedding(7, 4), "drop": nn.Dropout()}).eval()
CELLS.w, CELLS.b = W, B

# Of x[4], kind (an i32), word (a token) and the states of the children, h[children, 4].
ELEMENTS = [
    lambda x, h: x.abs() + x.exp() + x.erf() + x.sin() * x.cos() + x.round() + x.floor(),
    lambda x, h: (x.abs() + 1).log() + x.abs().log1p() + x.abs().sqrt() + (x.abs() + 1).rsqrt() + (x * x + 1).reciprocal(),
    lambda x, h: x.sigmoid() + x.tanh() + x.relu() - x.neg() + F.silu(x) + x.square() + x.pow(-3) / 1e3 + x.positive(),
    lambda x, h: F.gelu(x) + F.gelu(x, approximate="tanh") + F.leaky_relu(x, 0.2) + F.elu(x, 2.0) + F.softplus(x),
    lambda x, h: x.maximum(-x) * x.minimum(x * 2) + torch.lerp(x, -x, 0.3) + torch.addcmul(x, x, x, value=2) + (3 - x),
    lambda x, h: torch.where((x > 0) & (x < 1) | (x >= 2) & (x <= 3) | ~(x != x.floor()), x, 2.0),
    lambda x, h: torch.where(torch.logical_or(torch.logical_and(x > 0, x < 1), torch.logical_not(x == 3)), x, x + 1),
    lambda x, h: torch.add(x, h.sum(0), alpha=2) + torch.sub(x, 1, alpha=3) + torch.rsub(x, 2, alpha=2) + x.true_divide(2),
    lambda x, h: x.clamp(-1, 1) + x.clamp_min(0) + x.clamp_max(0.5) + x.masked_fill(x > 0, -1.0) + (x > 0).to(torch.float32),
    lambda x, h: F.alpha_dropout(CELLS["drop"](x.clone().contiguous().detach()), training=False),
]
PRODUCTS = [
    lambda x, h: F.linear(x, W) + W.mv(x) + W @ x + x @ W + x.dot(x) + torch.einsum("ij,j->i", W, x),
    lambda x, h: (x[None].mm(W) + torch.addmm(B, x[None], W) + torch.addmv(x, W, x))[0],
    lambda x, h: torch.baddbmm(B[None], x.view(1, 1, 4), W[None])[0, 0] + torch.bmm(x.view(1, 1, 4), W[None]).view(4),
    lambda x, h: torch.outer(x, x).sum(0) + torch.ger(x, x)[1] + CELLS["bilinear"](x, x * 2),
    lambda x, h: h.sum(0) @ W + (h @ W).sum(0) + torch.einsum("nd,de->e", h, W) + (h * x).sum(-1) @ h + B[0],
]
REDUCTIONS = [
    lambda x, h: x * x.sum() + x.mean() + x.max() + x.min() + x.amax() - x.amin(0) + x.max(0)[0] + x.var() + x.std(unbiased=False),
    lambda x, h: x.softmax(0) + F.log_softmax(x, 0) + torch.logsumexp(x, 0) + W.sum(1) + W.mean(0) + W.amax(0) + W.softmax(0)[1],
    lambda x, h: CELLS["norm"](x) + CELLS["batch"](x[None])[0] + W.log_softmax(0)[0],
]
SHAPES = [
    lambda x, h: x.view(2, 2).t().flatten() + x.reshape(2, 2).transpose(0, 1).reshape_as(x) + x.view_as(h.sum(0)),
    lambda x, h: W.permute(1, 0)[2] + W.mT[1] + W.T.select(0, 1) + x.unsqueeze(0).squeeze(0) + x.unflatten(0, (2, 2)).view(-1),
    lambda x, h: x[:1].expand(4) + x[1:2].expand_as(x) + x[2:3].broadcast_to(4) + x[:2].repeat(2) + x[:1].tile(4),
    lambda x, h: torch.cat([x[::2], x[1:3]]) + torch.stack([x, -x]).sum(0) + torch.concat(x.split(2)[::-1]) + x.narrow(0, 1, 1),
    lambda x, h: torch.cat([a * b for a, b in zip(x.chunk(2), x.split([2, 2]))]) + sum(x[None].unbind(0)) + W.unbind(1)[1],
    lambda x, h: torch.zeros(4) + torch.zeros_like(x) + x.new_zeros(4) + torch.ones(4) + torch.ones_like(x) + x.new_ones(4) + x,
    lambda x, h: torch.full((4,), 2.0) + torch.full_like(x, 3.0) + x.new_full((4,), 4.0) * x + torch.scalar_tensor(2.0),
]
CELL = [
    lambda x, h: CELLS["gru"](x[None], h.sum(0)[None])[0] + CELLS["tanh"](x[None], x[None])[0] + CELLS["relu"](x[None])[0],
    lambda x, h: sum(CELLS["lstm"](x[None], (x[None], h.sum(0)[None])))[0],
]
ALL = ELEMENTS + PRODUCTS + REDUCTIONS + SHAPES + CELL

# What users do not write, and other spellings that torch.export may choose: one entry with an operator that is tested.
INTERNAL = {"_to_copy", "_softmax", "_log_softmax", "_unsafe_view", "__and__", "__or__", "_native_batch_norm_legit_no_training",
            "alias", "detach_", "lift_fresh_copy", "matrix_H", "numpy_T"}
SPELLINGS = {"bitwise_not", "bitwise_or", "bitwise_and", "concat", "feature_dropout", "square", "true_divide", "reshape_as", "view_as",
             "positive", "contiguous", "tile", "ger", "mv", "dot", "t", "mT", "flatten", "unflatten", "broadcast_to", "expand_as",
             "reshape", "narrow", "rsub", "to", "addmv", "baddbmm"}


class Seen(dict):
    def __getitem__(self, name):
        self.names.add(name)
        return super().__getitem__(name)


def test_all_of_the_table(monkeypatch):
    seen = Seen(OPERATORS)
    seen.names = set()
    monkeypatch.setattr(lower, "OPERATORS", seen)

    def cell(x, word, kind, h):
        row = CELLS["words"](word) + W[kind][0] + torch.index_select(W, 0, kind)[0] + kind.float()
        return tuple(each(x, h) for each in ALL) + (row,)
    names = [f"s{i}" for i in range(len(ALL) + 1)]
    espalier.torch.compile(cell, "tree(*)", {"x": "x[4]", "word": "word : token", "kind": "kind[1] : i32", "h": "children.s0"},
                           ", ".join(f"{name}[4]" for name in names), module=CELLS, backend="interpreter")
    missing = {name.removeprefix("aten.") for name in set(OPERATORS) - seen.names} - SPELLINGS - INTERNAL
    assert not missing, missing


def test_the_page_lists_the_table():
    page = Path(os.environ.get("ESPALIER_EXAMPLES", Path(__file__).parents[3] / "examples")).parent / "doc/pytorch.md"
    section = page.read_text().split("\n## Operators\n")[1].split("\nOther operators")[0]
    assert set(re.findall(r"`(\w+)`", section)) == {name.removeprefix("aten.") for name in OPERATORS} - INTERNAL
