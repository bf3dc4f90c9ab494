#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Trains a tagger of words by PyTorch, a child-sum TreeLSTM over dependency trees (examples/childsum), and prints what each
precision does to its tags.

  tagger.py TREES.conllu [--model MODEL.ra] [--hidden D] [--embedding E] [--epochs N] [--seed S] [--output WEIGHTS.safetensors]

Of each five sentences the last is not trained with, and counted. A word's tag (UPOS, column 4) is computed of the state of its
node, so of the word and all below it. Python packages espalier, torch, numpy.
"""
import argparse
from collections import Counter
from pathlib import Path

import espalier
import numpy as np
import torch

UNKNOWN = 0
GATES = "ifou"
PRECISIONS = ("f32", "bf16", "bf16x1", "bf16x3", "f16", "i16", "i8x3", "i8")


# --- sentences ---


def read_sentences(path):
    """Of each sentence its words, tags and heads; a head is the number of a word, or -1."""
    sentences, rows = [], []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        columns = line.split("\t")
        if not line and rows:
            sentences.append(([r[1].lower() for r in rows], [r[3] for r in rows], [int(r[6]) - 1 for r in rows]))
            rows = []
        elif len(columns) == 10 and columns[0].isdigit():
            rows.append(columns)
    return sentences


def number_words(sentences):
    counts = Counter(word for words, _, _ in sentences for word in words)
    return {word: number for number, word in enumerate(counts, UNKNOWN + 1)}, counts


def heights_of(heads):
    height = [0] * len(heads)
    for _ in heads:  # at most so many levels
        before = list(height)
        for node, head in enumerate(heads):
            if head >= 0:
                height[head] = max(height[head], height[node] + 1)
        if height == before:
            return height
    raise ValueError("the heads of a sentence are no tree")


def join_sentences(sentences, numbers, tags):
    """Arrays of several sentences: words, tags, heads (-1 = none) and heights of all nodes, and where each sentence begins."""
    words, kinds, heads, heights, begin = [], [], [], [], [0]
    for text, tag, head in sentences:
        words += [numbers.get(word, UNKNOWN) for word in text]
        kinds += [tags.index(t) for t in tag]
        heads += [h + begin[-1] if h >= 0 else -1 for h in head]
        heights += heights_of(head)
        begin.append(len(words))
    return np.array(words, np.int32), np.array(kinds), np.array(heads), np.array(heights), begin


# --- training ---


def make_parameters(words, hidden, embedding, tags):
    def draw(*shape):
        return (torch.randn(*shape) / shape[-1] ** 0.5).requires_grad_()

    weights = {"embedding.weight": torch.randn(words, embedding).mul_(0.5).requires_grad_()}
    for gate in GATES:
        weights[f"W_{gate}"] = draw(hidden, embedding)
        weights[f"U_{gate}"] = draw(hidden, hidden)
        weights[f"b_{gate}"] = torch.full((hidden,), 1.0 if gate == "f" else 0.0, requires_grad=True)
    weights["output.weight"] = draw(tags, hidden)
    weights["output.bias"] = torch.zeros(tags, requires_grad=True)
    return weights


def compute_states(weights, words, heads, heights):
    """The state h of each node, one level after the other."""
    x = weights["embedding.weight"][words]
    given = {gate: x @ weights[f"W_{gate}"].T + weights[f"b_{gate}"] for gate in GATES}
    h = torch.zeros(len(words), given["i"].shape[1])
    sums, kept = torch.zeros_like(h), torch.zeros_like(h)
    forget = given["f"]
    levels = []
    for level in range(int(heights.max()) + 1):
        nodes = (heights == level).nonzero()[:, 0]
        i, o = (torch.sigmoid(given[g][nodes] + sums[nodes] @ weights[f"U_{g}"].T) for g in "io")
        u = torch.tanh(given["u"][nodes] + sums[nodes] @ weights["U_u"].T)
        c = i * u + kept[nodes]
        state = o * torch.tanh(c)
        levels.append((nodes, state))
        children = heads[nodes] >= 0
        to, below = heads[nodes][children], state[children]
        gate = torch.sigmoid(forget[to] + below @ weights["U_f"].T)
        sums = sums.index_add(0, to, below)
        kept = kept.index_add(0, to, gate * c[children])
    return h.index_add(0, torch.cat([n for n, _ in levels]), torch.cat([s for _, s in levels]))


def forget_rare_words(words, frequency, generator):
    """Some words become unknown, rare ones more often, so that the row of unknown words is trained."""
    rate = 0.25 / (0.25 + frequency[words])
    return torch.where(torch.rand(len(words), generator=generator) < rate, UNKNOWN, words)


def train(sentences, numbers, counts, tags, options):
    weights = make_parameters(len(numbers) + 1, options.hidden, options.embedding, len(tags))
    optimizer = torch.optim.Adam(weights.values(), 2e-3, weight_decay=1e-6)
    frequency = torch.tensor([0, *(counts[word] for word in numbers)], dtype=torch.float32)
    generator = torch.Generator().manual_seed(options.seed)
    for epoch in range(options.epochs):
        order, total = torch.randperm(len(sentences), generator=generator).tolist(), 0.0
        for first in range(0, len(order), 32):
            batch = join_sentences([sentences[i] for i in order[first : first + 32]], numbers, tags)
            words, kinds, heads, heights = (torch.from_numpy(array).long() for array in batch[:4])
            states = compute_states(weights, forget_rare_words(words, frequency, generator), heads, heights)
            states = torch.nn.functional.dropout(states, 0.3)
            loss = torch.nn.functional.cross_entropy(states @ weights["output.weight"].T + weights["output.bias"], kinds)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights.values(), 5.0)
            optimizer.step()
            total += float(loss.detach()) * len(words)
        print(f"epoch {epoch + 1}: loss {total / sum(len(s[0]) for s in sentences):.3f}", flush=True)
    return {name: weight.detach().numpy() for name, weight in weights.items()}


# --- precisions ---


def make_structures(words, heads, begin):
    children = [np.flatnonzero(heads == node) for node in range(len(words))]
    starts = [int(np.flatnonzero(heads[a:b] < 0)[0]) for a, b in zip(begin, begin[1:])]
    local = np.concatenate([c - begin[np.searchsorted(begin, node, "right") - 1] for node, c in enumerate(children)])
    ends = np.concatenate([[0], np.cumsum([len(c) for c in children])])
    return espalier.Structures(ends.astype(np.int32), local.astype(np.int32), np.array(begin, np.int32), np.array(starts, np.int32), word=words)


def print_row(name, logits, reference, kinds):
    best = logits.argmax(1)
    changed, change = int((best != reference.argmax(1)).sum()), float(np.abs(logits - reference).max())
    print(f"| {name} | {(best == kinds).mean() * 100:.2f} % | {changed} | {change:.2g} |")


def print_precisions(model, weights, sentences, numbers, tags):
    words, kinds, heads, heights, begin = join_sentences(sentences, numbers, tags)
    structures = make_structures(words, heads, begin)
    tensors = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    states = compute_states(tensors, *(torch.from_numpy(array).long() for array in (words, heads, heights)))
    reference = (states @ tensors["output.weight"].T + tensors["output.bias"]).numpy()
    print(f"{len(sentences)} sentences, {len(words)} words, {int((words == UNKNOWN).sum())} of them unknown")
    print("| precision | tags that are right | other tags than PyTorch | largest change of a logit |\n|---|---|---|---|")
    print_row("f32, PyTorch", reference, reference, kinds)
    for precision in PRECISIONS:
        program = espalier.load(str(model), weights, at="all", rules="-tables", precision=precision)
        print_row(precision, np.array(program(structures)["logits"]), reference, kinds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path)
    parser.add_argument("--model", type=Path, default=Path(__file__).parent.parent / "examples/childsum/childsum.ra")
    parser.add_argument("--hidden", type=int, default=150)
    parser.add_argument("--embedding", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="where the weights are written")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    sentences = read_sentences(options.trees)
    trained = [s for i, s in enumerate(sentences) if i % 5 != 4]
    numbers, counts = number_words(trained)
    tags = sorted({tag for _, kinds, _ in sentences for tag in kinds})
    weights = train(trained, numbers, counts, tags, options)
    if options.output:
        from safetensors.numpy import save_file

        save_file(weights, options.output)
    print_precisions(options.model, weights, sentences[4::5], numbers, tags)


if __name__ == "__main__":
    main()
