# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The builder's calls that lowerings use, one for each esp_builder_*.

They are made when a state or an output needs their value, so that a trace may compute what turns out to be zero or
unused, and no parameter is declared that nothing needs.  espalier.Builder notes the place of its caller, which would be
this package; here the place
is that of the Python which was traced (`at`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import _native
from ..model import default_context
from .errors import Place

_BODIES = {"leaf": 1, "inner": 2, "output": 4, "root": 5, "below": 6}
_AT = {"root": 1, "every node": 2}


class Value:
    """A call that may be made, and its number in the builder once it was; `order`: how many were there before it."""

    def __init__(self, order: int, place: Place | None, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.order, self.place, self.call, self.arguments = order, place, call, arguments
        self.number: int | None = None

    @property
    def operands(self) -> list[Value]:
        return [v for a in self.arguments for v in (a if isinstance(a, tuple) else (a,)) if isinstance(v, Value)]


class Emitter:
    """`declared`: the names of parameters and inputs that are needed."""

    def __init__(self, name: str, structure: str, context: _native.Context | None = None) -> None:
        self._raw = _native.RawBuilder(context or default_context(), name, structure)
        self.traversal, self.finish = self._raw.traversal, self._raw.finish
        self._made = 0
        self._place: Place | None = None
        self.declared: set[str] = set()

    def at(self, file: str, line: int) -> None:
        """The place of the calls that follow."""
        self._place = (file, line)

    # --- what is done at once ---

    def state(self, name: str, shape: str) -> None:
        self._raw.declare("s", name, shape)

    def body(self, kind: str) -> None:
        self._raw.body(_BODIES[kind])

    def assign(self, state: str, value: Value) -> None:
        number = self._emit(value)
        self._note(self._place)
        self._raw.assign(state, number)

    def output(self, name: str, value: Value, at: str, labels: Iterable[str] = ()) -> None:
        number = self._emit(value)
        self._note(self._place)
        self._raw.output(name, number, _AT[at], tuple(labels))

    def _note(self, place: Place | None) -> None:
        if place and place[0]:
            self._raw.at(place[0], place[1])

    def _emit(self, value: Value) -> int:
        """Makes the calls that a value needs, in the order in which they were written."""
        needed, todo = {}, [value]
        while todo:
            each = todo.pop()
            if each.number is None and each.order not in needed:
                needed[each.order] = each
                todo.extend(each.operands)
        for order in sorted(needed):
            each = needed[order]
            self._note(each.place)
            each.number = each.call(*map(_numbers, each.arguments))
        assert value.number is not None
        return value.number

    # --- values ---

    def _value(self, call: Callable[..., Any], *arguments: Any) -> Value:
        self._made += 1
        return Value(self._made, self._place, call, arguments)

    def _declare(self, kind: str, name: str, shape: str | None) -> int | None:
        self.declared.add(name)
        return self._raw.declare(kind, name, shape)

    def param(self, name: str, shape: str) -> Value:
        return self._value(self._declare, "p", name, shape)

    def input(self, name: str, shape: str) -> Value:
        return self._value(self._declare, "i", name, shape)

    def token(self, name: str) -> Value:
        return self._value(self._declare, "t", name, None)

    def number(self, x: float) -> Value:
        return self._value(self._raw.number, x)

    def call(self, function: str, *values: Value) -> Value:
        return self._value(self._raw.call, function, values)

    def call_along(self, function: str, axis: int, *values: Value) -> Value:
        return self._value(self._raw.call, function, values, axis)

    def lookup(self, table: Value, token: Value) -> Value:
        return self._value(self._raw.lookup, table, token)

    def slice(self, value: Value, axis: int, begin: str | None, end: str | None) -> Value:
        return self._value(self._raw.slice, value, axis, begin, end)

    def indexed(self, text: str, *values: Value) -> Value:
        return self._value(self._raw.indexed, text, values)

    def zeros(self, shape: str) -> Value:
        return self._value(self._raw.named, "z", shape)

    def get(self, name: str) -> Value:
        return self._value(self._raw.named, "g", name)

    def member(self, name: str) -> Value:
        return self._value(self._raw.named, "m", name)

    def child(self, slot: int, name: str) -> Value:
        return self._value(self._raw.relative, "c", slot, name)

    def parent(self, which: int, name: str) -> Value:
        return self._value(self._raw.relative, "p", which, name)

    def children(self, function: str, value: Value) -> Value:
        return self._value(self._raw.over, "c", function, value)

    def members(self, function: str, value: Value) -> Value:
        return self._value(self._raw.over, "m", function, value)


def _numbers(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return tuple(map(_numbers, argument))
    return argument.number if isinstance(argument, Value) else argument
