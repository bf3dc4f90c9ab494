#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Makes the weights of selfattention.ra by a fixed seed, and what PyTorch's TransformerEncoder computes of them.

    python3 reference.py [FOLDER]      reads sentences.txt, writes selfattention.safetensors, words.txt and reference.npz

It needs PyTorch, NumPy and safetensors."""
import pathlib
import sys

import numpy
import safetensors.numpy
import torch

LAYERS, HEADS, HIDDEN, INNER, CLASSES, SEED = 2, 4, 32, 48, 5, 20170612


class Model(torch.nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, HIDDEN)
        layer = torch.nn.TransformerEncoderLayer(HIDDEN, HEADS, INNER, dropout=0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).layers
        self.output = torch.nn.Linear(HIDDEN, CLASSES)
        pairs = torch.arange(0, HIDDEN, 2, dtype=torch.float32)
        self.register_buffer("rate", 10000.0 ** (-pairs / HIDDEN))

    def forward(self, words):
        angle = torch.arange(len(words), dtype=torch.float32)[:, None] * self.rate
        x = self.embedding(words) + torch.cat([angle.sin(), angle.cos()], 1)
        for layer in self.layers:
            x = layer(x[None])[0]
        return self.output(x)


def make_weights(model):
    """Each value is drawn, so that no bias is zero and no scale one; layers differ."""
    generator = torch.Generator().manual_seed(SEED)
    for name, p in model.named_parameters():
        width = p.shape[-1] ** -0.5 if p.dim() == 2 and "embedding" not in name else 0.3
        noise = torch.randn(p.shape, generator=generator) * 2 * width
        with torch.no_grad():
            p.copy_(noise + 1 if "norm" in name and name.endswith("weight") else noise)


def main(folder):
    lines = [line.split() for line in (folder / "sentences.txt").read_text().splitlines()]
    words = ["<unk>"] + sorted({word for line in lines for word in line})
    model = Model(len(words)).eval()
    make_weights(model)
    with torch.no_grad():
        logits = [model(torch.tensor([words.index(word) for word in line])).numpy() for line in lines]
    tensors = {name: p.detach().numpy() for name, p in model.named_parameters()}
    tensors["position.rate"] = model.rate.numpy()
    safetensors.numpy.save_file(tensors, folder / "selfattention.safetensors")
    (folder / "words.txt").write_text("".join(word + "\n" for word in words))
    numpy.savez(folder / "reference.npz", logits=numpy.concatenate(logits))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent))
