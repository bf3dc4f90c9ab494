# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What goes wrong between PyTorch and a model: where in the Python source, and what to do about it."""


from __future__ import annotations

from typing import Optional

Place = tuple[Optional[str], int]  # a file and a line of Python; (None, 0) = not known


class TraceError(Exception):
    """A function that cannot become a model.

    `file` and `line` are the place in the Python source, or None; `operator` is the ATen operator, or ""; `hint` says
    what to do."""

    def __init__(self, message: str, hint: str, place: Place = (None, 0), operator: str = "") -> None:
        self.message, self.hint, self.operator = message, hint, operator
        self.file, self.line = place
        where = f"{self.file}:{self.line}: " if self.file else ""
        super().__init__(f"{where}{message}\n    hint: {hint}")


class Refused(Exception):
    """Raised by the lowering of an operator; becomes a TraceError with the operator and its place."""

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(message)
