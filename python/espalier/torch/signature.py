# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What the arguments of a function are in a model, in the notation of the language.

    "x[300]"               an input of the node; "x[1, 300]": with an axis that only the function sees
    "kind : i32"           a number of another type
    "word : token"         a token; "word[1] : token" as a vector of one
    "emb.weight[word]"     the row of a parameter that a token picks; "emb.weight[word][1, 300]"
    "left.h"               a state of a child by its name, "previous.h" in a sequence, "children[0].h" by its number
    "children.h"           the states of all children, stacked: [children, D]; "children.h[1, children, 150]"
    "h"                    of outputs: a state of the node
    "nodes.h"              of outputs at the root: the states of all nodes, stacked
    "x[nodes, 1, 300]"     of a whole module over a sequence: what all nodes carry; also "word[nodes] : token"

Shapes that stand behind a name are those that the function sees: axes of 1 may be anywhere in them, all others are those
of what is named.  An argument may be a tuple of arguments; what is neither text nor tuple is passed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .errors import TraceError
from .extents import Extent, Shape

States = Mapping[str, tuple[int, ...]]  # the shapes of states, by name, in their order
CHILDREN, NODES = "children", "nodes"
_ARGUMENT = re.compile(r"(?:children\[(\d+)\]\.)?([A-Za-z_0-9.]+)((?:\s*\[[^\]]*\])*)\s*(?::\s*(\w+))?")
_STATE = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(?:\[([^\]]*)\])?\s*(?:,|$)")


@dataclass(frozen=True)
class Structure:
    """`slots`: how many children an inner node has, None = any number; `names`: of these, if they have some."""

    text: str
    kind: str
    slots: int | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Argument:
    """What a tensor of the function is.  `kind`: "input", "row", "state", "child", "children" or "nodes" (the states of all
    nodes); `shape`: as the function sees it, with CHILDREN or NODES for the axis along which items are stacked."""

    text: str
    kind: str
    name: str
    shape: Shape
    dtype: str = "f32"
    token: str = ""
    slot: int = 0

    @property
    def element(self) -> Shape:
        """The shape of what one node or child has, without axes of 1."""
        return tuple(n for n in self.shape if n != 1 and not isinstance(n, str))

    @property
    def stack(self) -> int | None:
        """The axis along which items are stacked, or None."""
        return next((i for i, n in enumerate(self.shape) if isinstance(n, str)), None)


def parse_structure(text: str) -> Structure:
    """The Structure of "tree(*)", "dag(2)", "tree(left, right)", "sequence"."""
    text = " ".join(text.split())
    if text == "sequence":
        return Structure(text, "sequence", 1, ("previous",))
    match = re.fullmatch(r"(tree|dag)\s*\(([^)]*)\)", text)
    if not match:
        raise TraceError(f"'{text}' is no structure", 'write "sequence", "tree(*)", "tree(2)", "tree(left, right)" or a dag')
    kind, inside = match[1], match[2].strip()
    if inside == "*":
        return Structure(text, kind, None)
    if inside.isdigit():
        return Structure(text, kind, int(inside))
    names = tuple(n.strip() for n in inside.split(","))
    return Structure(text, kind, len(names), names)


def parse_states(text: str) -> States:
    """{"h": (150,)} of "h[150], c[150]"."""
    states, at = {}, 0
    while at < len(text.strip()):
        match = _STATE.match(text, at)
        if not match:
            raise TraceError(f"'{text[at:].strip()}' is no state", 'write "h[150], c[150]": names with numbers in brackets')
        states[match[1]] = _numbers(match[2] or "", match[0].strip(" ,"))
        at = match.end()
    return states


def _numbers(inside: str, text: str) -> tuple[int, ...]:
    items = [n.strip() for n in inside.split(",")] if inside.strip() else []
    if not all(n.isdigit() and int(n) > 0 for n in items):
        raise TraceError(f"the extents of '{text}' must be numbers", "write out the sizes: h[150]")
    return tuple(int(n) for n in items)


def _extent(item: str, text: str) -> Extent:
    if item in (CHILDREN, NODES):
        return item
    return _numbers(item, text)[0]


class Notation:
    """Reads arguments for a structure, states and the shapes of parameters ({name: shape})."""

    def __init__(self, structure: Structure, states: States, parameters: Mapping[str, Shape]) -> None:
        self.structure, self.states, self.parameters = structure, states, parameters

    def read(self, spec: Any) -> Any:
        """An Argument, a tuple of what `read` returns, or a value that is no text as it is."""
        if isinstance(spec, (tuple, list)):
            return tuple(self.read(s) for s in spec)
        return self._argument(spec) if isinstance(spec, str) else spec

    def _argument(self, text: str) -> Argument:
        match = _ARGUMENT.fullmatch(text.strip())
        if not match:
            raise TraceError(f"'{text}' describes no argument",
                             'write what it is in the model: "x[300]", "word : token", "children.h"')
        slot, name, brackets, dtype = match.groups()
        groups = [[n.strip() for n in g.split(",")] for g in re.findall(r"\[([^\]]*)\]", brackets)]
        token = ""
        if groups and len(groups[0]) == 1 and groups[0][0].isidentifier() and groups[0][0] not in (CHILDREN, NODES):
            token = groups.pop(0)[0]
        if len(groups) > 1:
            raise TraceError(f"'{text}' has too many brackets", "write one shape behind a name")
        shape = tuple(_extent(n, text) for n in groups[0]) if groups else None
        argument = self._resolve(text, name, token, None if slot is None else int(slot))
        if argument is None:
            return Argument(text, "input", name, shape or (), dtype or "f32")
        return _view(argument, shape)

    def _resolve(self, text: str, name: str, token: str, slot: int | None) -> Argument | None:
        """What a name stands for, in its own shape; None = an input."""
        if token:
            if name not in self.parameters:
                raise TraceError(f"'{text}': there is no parameter '{name}'", "use a name of module.state_dict()")
            return Argument(text, "row", name, tuple(self.parameters[name][1:]), token=token)
        if slot is not None:
            return self._child(text, name, slot)
        if name in self.states:
            return Argument(text, "state", name, self.states[name])
        owner, _, state = name.partition(".")
        if owner in self.structure.names:
            return self._child(text, state, self.structure.names.index(owner))
        if owner == NODES:
            return Argument(text, "nodes", state, (NODES, *self._state(text, state)))
        if owner == CHILDREN:
            slots = self.structure.slots
            return Argument(text, "children", state, (CHILDREN if slots is None else slots, *self._state(text, state)))
        return None

    def _child(self, text: str, state: str, slot: int) -> Argument:
        if self.structure.slots is None or slot >= self.structure.slots:
            raise TraceError(f"'{text}': nodes of {self.structure.text} have no child {slot}",
                             'use "children.h", the states of all children')
        return Argument(text, "child", state, self._state(text, state), slot=slot)

    def _state(self, text: str, state: str) -> Shape:
        if state not in self.states:
            raise TraceError(f"'{text}': there is no state '{state}'",
                             'name it in `states`: "h[150], c[150]"; what an edge carries, its child can return as a state')
        return self.states[state]


def _view(argument: Argument, shape: Shape | None) -> Argument:
    """`argument` in a shape that differs in axes of 1."""
    if shape is None:
        return argument
    own = argument.shape
    fixed = argument.kind == "children" and not isinstance(own[0], str)
    seen = tuple(own[0] if n == CHILDREN and fixed else n for n in shape)
    if [n for n in seen if n != 1] != [n for n in own if n != 1]:
        show = ", ".join(map(str, own))
        raise TraceError(f"'{argument.text}' has another shape than [{show}]", "add axes of 1 only")
    return replace(argument, shape=seen)


def flatten(spec: Any) -> list[Any]:
    """The leaves of nested tuples."""
    if isinstance(spec, tuple):
        return [leaf for s in spec for leaf in flatten(s)]
    return [spec]


def build(spec: Any, value: Callable[[Argument], Any]) -> Any:
    """Nested tuples with `value(argument)` for each Argument; what is no Argument stays."""
    if isinstance(spec, tuple):
        return tuple(build(s, value) for s in spec)
    return value(spec) if isinstance(spec, Argument) else spec
