# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Run recursive deep-learning models on CPUs.

    model = espalier.load("treelstm.ra", "w.safetensors", vocab="words.txt")
    out = model([(("A", "lovely"), "film"), ("Never", "boring")])
    out["sentiment"]            # a NumPy view: a row for each structure
    out.label("sentiment")      # the names of the largest: ['positive', 'neutral']

`espalier.load` says what models, weights and options are, `Model.__call__` what structures are.
"""
from ._native import (
    ArgumentError,
    BackendError,
    BusyError,
    CancelledError,
    ClosedError,
    Context,
    Diagnostic,
    Error,
    ExpiredError,
    ForkedError,
    InputError,
    ModelText,
    OutOfMemoryError,
    Structures,
    SystemRefusedError,
    explain_error,
    targets,
)
from ._native import version as __version__
from .builder import Builder
from .model import Input, Model, Output, Result, State, StructureResult, load
from .profile import Profile
from .quantised import Difference, Product, Quantised, Scales, quantise
from .service import Service, Stream, Ticket

__all__ = [
    "ArgumentError",
    "BackendError",
    "Builder",
    "BusyError",
    "CancelledError",
    "ClosedError",
    "Context",
    "Diagnostic",
    "Difference",
    "Error",
    "ExpiredError",
    "ForkedError",
    "Input",
    "InputError",
    "Model",
    "ModelText",
    "OutOfMemoryError",
    "Output",
    "Product",
    "Profile",
    "Quantised",
    "Result",
    "Scales",
    "Service",
    "State",
    "StructureResult",
    "Stream",
    "Structures",
    "SystemRefusedError",
    "Ticket",
    "__version__",
    "explain_error",
    "load",
    "quantise",
    "targets",
]
