#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Trains dependency.ra on a CoNLL-U file and writes all that belongs to it.

    python3 train.py en_ewt-ud-dev.conllu

Every fifth sentence is held out. Written are the vocabularies (words.txt, relations.txt), the weights
(dependency.safetensors, the embedding of words as F16), what PyTorch computes for sentences.conllu (reference.npz) and how many
of the held-out words of each tag there are, were predicted, and were predicted rightly (heldout.tsv). It takes a few
minutes on one core and needs PyTorch and NumPy.
"""
import collections
import json
import os
import struct
import sys

import numpy
import torch

TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
HIDDEN, EMBEDDING, EPOCHS, MINIBATCH, RARE = 48, 32, 14, 16, 2
FOLDER = os.path.dirname(os.path.abspath(__file__))
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


# --- sentences ---

def read(path):
    """Sentences as lists of (word, relation, head, tag); head -1 at the root."""
    sentences, words = [], []
    with open(path, encoding="utf-8") as file:
        for line in list(file) + ["\n"]:
            column = line.rstrip("\n").split("\t")
            if column[0].isdigit():
                words.append((column[1].translate(LOWER), column[7], int(column[6]) - 1, column[3]))
            elif not line.strip() and words:
                sentences.append(words)
                words = []
    return sentences


def vocabulary(count):
    return ["<unk>"] + sorted(word for word, n in count.items() if n >= RARE)


class Batch:
    """Sentences side by side: nodes by height, so that a level needs those before it only."""

    def __init__(self, sentences, words, relations):
        self.word = torch.tensor([words.get(w[0], 0) for s in sentences for w in s])
        self.rel = torch.tensor([relations.get(w[1], 0) for s in sentences for w in s])
        self.tag = torch.tensor([TAGS.index(w[3]) for s in sentences for w in s])
        parent, first = [], 0
        for s in sentences:
            parent += [w[2] + first if w[2] >= 0 else -1 for w in s]
            first += len(s)
        height = [0] * first
        for node in range(first):
            up, level = parent[node], 1
            while up >= 0 and height[up] < level:
                height[up] = level
                up, level = parent[up], level + 1
        self.levels = []
        for level in range(max(height) + 1):
            nodes = [n for n in range(first) if height[n] == level]
            place = {n: i for i, n in enumerate(nodes)}
            edges = [(place[parent[n]], n) for n in range(first) if parent[n] in place]
            self.levels.append((torch.tensor(nodes), torch.tensor([e[0] for e in edges], dtype=torch.long),
                                torch.tensor([e[1] for e in edges], dtype=torch.long)))


# --- the model, in the words of dependency.ra ---

class Model(torch.nn.Module):
    def __init__(self, words, relations):
        super().__init__()
        shape = {"word.weight": (words, EMBEDDING), "rel.weight": (relations, EMBEDDING)}
        for gate in "ifou":
            shape["W_" + gate] = (HIDDEN, EMBEDDING)
            shape["U_" + gate] = (HIDDEN, HIDDEN)
            shape["b_" + gate] = (HIDDEN,)
        shape["output.weight"], shape["output.bias"] = (len(TAGS), HIDDEN), (len(TAGS),)
        self.p = torch.nn.ParameterDict()
        for name, size in shape.items():
            scale = 0.5 if name.endswith(".weight") and "output" not in name else size[-1] ** -0.5
            value = torch.zeros(size) if len(size) == 1 else torch.randn(size) * scale
            self.p[name.replace(".", ":")] = torch.nn.Parameter(value)

    def __getitem__(self, name):
        return self.p[name.replace(".", ":")]

    def names(self):
        return [name.replace(":", ".") for name in self.p]

    def forward(self, batch, word, drop=lambda x: x):
        x = drop(self["word.weight"][word] + self["rel.weight"][batch.rel])
        wx = {g: x @ self["W_" + g].T + self["b_" + g] for g in "ifou"}
        h = torch.zeros(len(word), HIDDEN)
        c = torch.zeros(len(word), HIDDEN)
        for nodes, parent, child in batch.levels:
            s = torch.zeros(len(nodes), HIDDEN).index_add(0, parent, h[child])
            i = torch.sigmoid(wx["i"][nodes] + s @ self["U_i"].T)
            o = torch.sigmoid(wx["o"][nodes] + s @ self["U_o"].T)
            u = torch.tanh(wx["u"][nodes] + s @ self["U_u"].T)
            f = torch.sigmoid(wx["f"][nodes][parent] + h[child] @ self["U_f"].T)
            new = (i * u).index_add(0, parent, f * c[child])
            c = c.index_copy(0, nodes, new)
            h = h.index_copy(0, nodes, o * torch.tanh(new))
        return drop(h) @ self["output.weight"].T + self["output.bias"]


def train(model, batches):
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=EPOCHS * len(batches))
    for epoch in range(EPOCHS):
        total = 0.0
        for k in torch.randperm(len(batches)).tolist():
            b = batches[k]
            word = torch.where(torch.rand(len(b.word)) < 0.15, torch.zeros_like(b.word), b.word)
            loss = torch.nn.functional.cross_entropy(
                model(b, word, torch.nn.Dropout(0.3)), b.tag)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(batches):.4f}", flush=True)


# --- files ---

def path_of(name):
    return os.path.join(FOLDER, name)


def write_lines(name, lines):
    with open(path_of(name), "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def write_weights(model):
    header, blob = {}, b""
    for name in model.names():
        value = model[name].detach().numpy()
        value = value.astype("<f2" if name == "word.weight" else "<f4")
        header[name] = {"dtype": "F16" if value.itemsize == 2 else "F32", "shape": list(value.shape),
                        "data_offsets": [len(blob), len(blob) + value.nbytes]}
        blob += value.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path_of("dependency.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def write_reference(model, words, relations):
    b = Batch(read(path_of("sentences.conllu")), words, relations)
    numpy.savez(path_of("reference.npz"), tag=model(b, b.word).detach().numpy())


def write_heldout(model, held_out):
    gold, predicted, right = collections.Counter(), collections.Counter(), collections.Counter()
    for b in held_out:
        for tag, best in zip(b.tag.tolist(), model(b, b.word).argmax(1).tolist()):
            gold[tag] += 1
            predicted[best] += 1
            right[tag] += tag == best
    write_lines("heldout.tsv", [f"{t}\t{gold[i]}\t{predicted[i]}\t{right[i]}" for i, t in enumerate(TAGS)])
    print(f"held out: {sum(right.values())} of {sum(gold.values())} words")


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    sentences = read(sys.argv[1])
    training = [s for i, s in enumerate(sentences) if i % 5 != 4]
    words = vocabulary(collections.Counter(w[0] for s in training for w in s))
    relations = vocabulary(collections.Counter(w[1] for s in training for w in s))
    write_lines("words.txt", words)
    write_lines("relations.txt", relations)
    words = {w: i for i, w in enumerate(words)}
    relations = {r: i for i, r in enumerate(relations)}
    model = Model(len(words), len(relations))
    train(model, [Batch(training[i:i + MINIBATCH], words, relations) for i in range(0, len(training), MINIBATCH)])
    with torch.no_grad():
        model["word.weight"].copy_(model["word.weight"].half().float())
        write_weights(model)
        write_heldout(model, [Batch([s], words, relations) for i, s in enumerate(sentences) if i % 5 == 4])
        write_reference(model, words, relations)


if __name__ == "__main__":
    main()
