# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Small cells and networks, written as such are: with axes of 1 for a minibatch, views, chunks and mailboxes."""

import torch
import torch.nn.functional as F
from torch import nn

WORDS, X, H = 20, 6, 4


class ChildSum(nn.Module):
    """A child-sum TreeLSTM that takes the states of all children, stacked, and an input of one row."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(WORDS, X)
        self.gates_x, self.gates_h = nn.Linear(X, 3 * H), nn.Linear(H, 3 * H)
        self.forget_x, self.forget_h = nn.Linear(X, H), nn.Linear(H, H)
        self.out = nn.Linear(H, 3)

    def node(self, x, child_c, child_h):
        gates = self.gates_x(x) + self.gates_h(torch.sum(child_h, dim=0, keepdim=True))
        i, o, u = torch.split(gates, gates.size(1) // 3, dim=1)
        f = torch.sigmoid(self.forget_h(child_h) + self.forget_x(x).repeat(len(child_h), 1))
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sum(f * child_c, dim=0, keepdim=True)
        return c, torch.sigmoid(o) * torch.tanh(c)


class Nodes:
    """A node batch of one, of which functions over mailboxes read `mailbox` or `data`."""

    def __init__(self, mailbox, data):
        self.mailbox, self.data = mailbox, data


class Mailbox(nn.Module):
    """A binary TreeLSTM over batches of nodes with mailboxes of what their children sent: [nodes, 2, H]."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(WORDS, X)
        self.iou_x, self.iou_h = nn.Linear(X, 3 * H, bias=False), nn.Linear(2 * H, 3 * H, bias=False)
        self.bias = nn.Parameter(torch.randn(1, 3 * H))
        self.forget = nn.Linear(2 * H, 2 * H)
        self.out = nn.Linear(H, 3)

    def reduce(self, nodes):
        both = nodes.mailbox["h"].view(nodes.mailbox["h"].size(0), -1)
        f = torch.sigmoid(self.forget(both)).view(*nodes.mailbox["h"].size())
        return {"iou": self.iou_h(both), "c": torch.sum(f * nodes.mailbox["c"], 1)}

    def apply(self, nodes):
        i, o, u = torch.chunk(nodes.data["iou"] + self.bias, 3, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + nodes.data["c"]
        return {"h": torch.sigmoid(o) * torch.tanh(c), "c": c}

    # The glue: a node batch of one.
    def inner(self, h, c):
        nodes = Nodes({"h": h, "c": c}, None)
        nodes.data = self.reduce(nodes)
        return self.apply(nodes)

    def leaf(self, x):
        return self.apply(Nodes(None, {"iou": self.iou_x(x), "c": torch.zeros(1, H)}))


class Attention(nn.Module):
    """A GRU whose old state is chosen of the children's by attention."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(WORDS, X)
        self.gru = nn.GRUCell(X, H)
        self.key, self.score = nn.Linear(H, 5), nn.Linear(5, 1, bias=False)
        self.out = nn.Linear(H, 3)

    def forward(self, x, child_h):
        weight = F.softmax(self.score(torch.tanh(self.key(child_h))), dim=0)
        return self.gru(x, (weight * child_h).sum(0, keepdim=True))


class Tagger(nn.Module):
    """An embedding, recurrent layers and a linear layer for each word."""

    def __init__(self, kind=nn.LSTM, **options):
        super().__init__()
        self.emb, self.drop = nn.Embedding(WORDS, X), nn.Dropout(0.3)
        self.rnn = kind(X, H, **options)
        self.out = nn.Linear(H * (1 + self.rnn.bidirectional), 3)

    def forward(self, words):
        return self.out(self.drop(self.rnn(self.drop(self.emb(words)))[0]))
