# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Models made by calls, with Python's operators."""
from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Union

from . import _native

Number = Union[int, float]
_EACH = -1
_BODIES = {"leaf": 1, "inner": 2, "node": 3, "output": 4, "root": 5, "below": 6}


class Value:
    """A value of a builder.  + - * / @ are the operators of the language, x[begin:end] is a part of the first axis,
    table[token] a row."""

    def __init__(self, builder: Builder, number: int) -> None:
        self._builder = builder
        self._number = number

    def _with(self, function: str, *others: Any) -> Value:
        return self._builder.call(function, *others)

    def __add__(self, other: Any) -> Value:
        return self._with("+", self, other)

    def __radd__(self, other: Any) -> Value:
        return self._with("+", other, self)

    def __sub__(self, other: Any) -> Value:
        return self._with("-", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self._with("-", other, self)

    def __mul__(self, other: Any) -> Value:
        return self._with("*", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self._with("*", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self._with("/", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._with("/", other, self)

    def __matmul__(self, other: Any) -> Value:
        return self._with("@", self, other)

    def __neg__(self) -> Value:
        return self._with("-", self)

    __iter__ = None  # x[0], x[1], ... are rows without an end, as sizes are not known yet

    def __getitem__(self, key: Any) -> Value:
        b = self._builder
        b._note_place()
        if not isinstance(key, slice):
            return Value(b, b._raw.lookup(self._number, b._value(key)._number))
        if key.step is not None:
            raise ValueError("a part of an axis has no step: x[begin:end]")
        begin, end = (None if each is None else str(each) for each in (key.start, key.stop))
        return Value(b, b._raw.slice(self._number, 0, begin, end))

    def __repr__(self) -> str:
        return f"<espalier value {self._number}>"


class _Neighbour:
    """The states of a child, of a parent, or of each of them in turn: k.h, or k["h"]."""

    def __init__(self, builder: Builder, kind: str, which: int) -> None:
        self._builder = builder
        self._kind = kind
        self._which = which

    def __getitem__(self, state: str) -> Value:
        b = self._builder
        b._note_place()
        return Value(b, b._raw.relative(self._kind, self._which, state))

    def __getattr__(self, state: str) -> Value:
        if state.startswith("_"):
            raise AttributeError(state)
        return self[state]


class _Member(_Neighbour):
    def __getitem__(self, state: str) -> Value:
        b = self._builder
        b._note_place()
        return Value(b, b._raw.named("m", state))


class Builder:
    """A model by calls: what a text can say (doc/model-text.md).

        b = espalier.Builder("tree_rnn", "tree(left, right)")
        word = b.token("word")
        E, W, c = b.param("E", "V, D"), b.param("W", "D, D"), b.param("c", "D")
        b.state("h", "D")
        b.body("leaf")
        b.assign("h", E[word])
        b.body("inner")
        b.assign("h", b.tanh(W @ (b.child(0).h + b.child(1).h) + c))
        b.output("y", b.get("h"))
        model = espalier.load(b, weights)

    Functions of the language are methods: b.sigmoid(x), b.softmax(x, axis=0).  Shapes are texts as in a model text; dimensions
    get their sizes from the weights.  Mistakes are reported by `finish`, at the line of Python that made them.
    """

    def __init__(self, name: str, structure: str, context: _native.Context | None = None) -> None:
        """An empty model with a name and a structure, written as in a text: "sequence", "tree(left, right)", "dag(*)", ..."""
        from .model import default_context

        self.name = name
        self.structure = structure
        self._raw = _native.RawBuilder(context or default_context(), name, structure)
        self._made: _native.ModelText | None = None

    def __repr__(self) -> str:
        return f"<espalier.Builder {self.name}: {self.structure}>"

    # --- places and values ---

    def _note_place(self) -> None:
        """Tells the library the line of the caller, outside of this file."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        self._raw.at(frame.f_code.co_filename, frame.f_lineno)

    def _value(self, value: Value | Number) -> Value:
        if isinstance(value, Value):
            if value._builder is not self:
                raise ValueError("a value belongs to the builder that made it")
            return value
        if isinstance(value, (int, float)):
            return Value(self, self._raw.number(value))
        raise TypeError(f"a value of this builder or a number, not {type(value).__name__}")

    def call(self, function: str, *arguments: Value | Number, axis: int | None = None) -> Value:
        """A function of the language by name, or an operator."""
        self._note_place()
        return Value(self, self._raw.call(function, tuple(self._value(each)._number for each in arguments), axis))

    def __getattr__(self, function: str) -> Any:
        if function.startswith("_"):
            raise AttributeError(function)
        return lambda *arguments, axis=None: self.call(function, *arguments, axis=axis)

    # --- declarations ---

    def _declare(self, kind: str, name: str, shape: str | None) -> Value:
        """What is declared; of states and inputs on edges it is no value, and is not passed on."""
        self._note_place()
        return Value(self, self._raw.declare(kind, name, shape) or 0)

    def param(self, name: str, shape: str = "") -> Value:
        """A parameter: a tensor of the weights."""
        return self._declare("p", name, shape)

    def input(self, name: str, shape: str = "") -> Value:
        """What nodes carry: a vector or a number."""
        return self._declare("i", name, shape)

    def token(self, name: str) -> Value:
        """A number that nodes carry, to look rows up with."""
        return self._declare("t", name, None)

    def edge(self, name: str, shape: str = "") -> None:
        """What edges to children carry, read as a state of the child."""
        self._declare("e", name, shape)

    def edge_token(self, name: str) -> None:
        """A token that edges carry."""
        self._declare("l", name, None)

    def state(self, name: str, shape: str = "") -> None:
        """A state, which bodies assign."""
        self._declare("s", name, shape)

    # --- bodies ---

    def body(self, body: str | int) -> None:
        """The body of the calls that follow: "leaf", "inner", "node" (both), "output", or of a traversal down "root" and
        "below"; or a number that `case` returned."""
        self._raw.body(_BODIES[body] if isinstance(body, str) else body)

    def case(self, name: str, base: str, conditions: str) -> int:
        """A case with a body of its own: "leaf" or "inner" nodes that fit conditions such as "children == 2"."""
        self._note_place()
        return self._raw.case(name, _BODIES[base], conditions)

    def traversal(self, direction: str) -> None:
        """Begins the next traversal, "up" or "down"."""
        self._note_place()
        self._raw.traversal(direction)

    def assign(self, state: str, value: Value | Number) -> None:
        """The value of a state in the current body."""
        self._note_place()
        self._raw.assign(state, self._value(value)._number)

    def output(self, name: str, value: Value | Number, at: str = "root", labels: Iterable[str] = ()) -> None:
        """An output, `at` the "root" or at "all" nodes; its value is computed in the body "output"."""
        self._note_place()
        where = {"root": 1, "all": 2}[at]
        self._raw.output(name, self._value(value)._number, where, tuple(labels))

    # --- states ---

    def get(self, state: str) -> Value:
        """A state of the node itself, or an output that was declared before."""
        self._note_place()
        return Value(self, self._raw.named("g", state))

    def child(self, slot: int) -> _Neighbour:
        """The child in a slot, from 0: b.child(0).h"""
        return _Neighbour(self, "c", slot)

    def parent(self) -> _Neighbour:
        """In a traversal down, the parent: b.parent().h"""
        return _Neighbour(self, "p", 0)

    def _over(self, kind: str, neighbour: _Neighbour, of_each: Any, function: str) -> Value:
        value = self._value(of_each(neighbour))
        self._note_place()
        return Value(self, self._raw.over(kind, function, value._number))

    def children(self, of_each: Any, function: str = "sum") -> Value:
        """The sum ("max": the largest) over all children: b.children(lambda k: U @ k.h)"""
        return self._over("c", _Neighbour(self, "c", _EACH), of_each, function)

    def parents(self, of_each: Any, function: str = "sum") -> Value:
        """The same over all parents, in a traversal down."""
        return self._over("p", _Neighbour(self, "p", _EACH), of_each, function)

    def members(self, of_each: Any, function: str = "sum") -> Value:
        """The same over all nodes of the structure: of what they carry, and of states of earlier traversals."""
        return self._over("m", _Member(self, "m", _EACH), of_each, function)

    # --- other values ---

    def zeros(self, shape: str) -> Value:
        """Zeros of a shape: b.zeros("D")."""
        self._note_place()
        return Value(self, self._raw.named("z", shape))

    def reshape(self, x: Any, shape: str = "") -> Value:
        """The elements of x in row-major order under another shape: b.reshape(x, "2, D")."""
        value = self._value(x)
        self._note_place()
        return Value(self, self._raw.reshape(value._number, shape))

    def dimension(self, name: str) -> Value:
        """The size of a dimension, as a number."""
        self._note_place()
        return Value(self, self._raw.named("d", name))

    def indexed(self, text: str, *arguments: Value) -> Value:
        """A value by index notation: b.indexed("(W, x)[i] = sum(W[i, j] * x[j] for j)", W, x)"""
        self._note_place()
        return Value(self, self._raw.indexed(text, tuple(self._value(each)._number for each in arguments)))

    def finish(self) -> _native.ModelText:
        """The model.  All mistakes are in the exception."""
        if self._made is None:
            self._made = self._raw.finish()
        return self._made
