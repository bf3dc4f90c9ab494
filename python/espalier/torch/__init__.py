# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Models from PyTorch: a cell or a module is traced, written in the language, compiled, and compared with PyTorch.

    model = espalier.torch.compile(
        net.cell.node_forward, structure="tree(*)", module=net,
        arguments={"inputs": "emb.weight[word][1, 300]", "child_c": "children.c", "child_h": "children.h"},
        states="c[150], h[150]", leaf="zeros", outputs={"logits": (net.linear, "h")})
    print(model.text)

PyTorch is needed for compiling only: a model runs, and can be saved and loaded, without it.
"""

import torch

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10):
    raise ImportError(f"espalier.torch needs PyTorch 2.10 or later; this is {torch.__version__}")

from .convert import Leaf
from .convert import Leaf as leaf
from .convert import Model, Output, compile, output
from .errors import TraceError
from .operators import OPERATORS

__all__ = ["OPERATORS", "Leaf", "Model", "Output", "TraceError", "compile", "leaf", "output"]
