#!/usr/bin/python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The models of examples/ that are layers of torch.nn.LSTM or torch.nn.GRU, on what `espalier bench --keep FOLDER` wrote.

  torch_layers.py MODEL FOLDER [--threads N]

A time includes the embedding of words and the outputs, where the model has them. Requests come on standard input
(common.py); the answer to "outputs" has the outputs of all nodes, or of the last. Laying the sequences of a minibatch side by
side is not timed; for Espalier it is.

Any PyTorch from 1.13 on; Debian's: packages python3-torch, python3-numpy, libopenblas0-pthread.
"""
import argparse
import sys

import numpy as np
import torch
from torch import nn

import common


class Layers(nn.Module):
    """Layers over words or vectors, [steps, sequences, inputs], and a linear output, where the weights have one."""

    def __init__(self, weights, unit, layers, both_ways, last):
        super().__init__()
        prefix = "lstm." if "embedding.weight" in weights else ""
        states = {name[len(prefix):]: value for name, value in weights.items() if name.startswith(prefix + "weight_")
                  or name.startswith(prefix + "bias_")}
        recurrent = states["weight_hh_l0"]
        self.inputs = states["weight_ih_l0"].size(1)
        self.unit = unit(self.inputs, recurrent.size(1), layers, bidirectional=both_ways)
        self.unit.load_state_dict(states)
        self.embedding = weights.get("embedding.weight")
        self.output = None
        self.last = last  # the output is that of the last node
        if "output.weight" in weights:
            self.output = nn.Linear(*weights["output.weight"].shape[::-1])
            self.output.load_state_dict({"weight": weights["output.weight"], "bias": weights["output.bias"]})

    def forward(self, x):
        if self.embedding is not None:
            x = nn.functional.embedding(x, self.embedding)
        h = self.unit(x)[0]
        if self.last:
            h = h[-1:]
        return h if self.output is None else self.output(h)


# unit, layers, in both directions, output at the last node alone
MODELS = {"bilstm": (nn.LSTM, 1, True, False), "bilstm2": (nn.LSTM, 2, True, False),
          "stacked-lstm": (nn.LSTM, 2, False, True), "stacked-gru": (nn.GRU, 2, False, False)}


def inputs_of(structures, model):
    """Of each sequence: words, or vectors."""
    if model.embedding is None:
        return [common.vectors_of(s, model.inputs) for s in structures]
    return [np.array(s.words) % model.embedding.size(0) for s in structures]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    with torch.inference_mode():
        weights = {name: torch.from_numpy(array) for name, array in common.read_weights(options.folder).items()}
        model = Layers(weights, *MODELS[options.model]).eval()
        x = inputs_of(common.read_structures(options.folder), model)
        print(f"torch {torch.__version__}, {options.threads} threads, BLAS {common.blas_of(torch)}", file=sys.stderr)
        common.serve(len(x), model, lambda minibatch: model(minibatch).transpose(0, 1).numpy(),
                     lambda first, count: torch.from_numpy(np.stack(common.chosen(x, first, count), axis=1)))


if __name__ == "__main__":
    main()
