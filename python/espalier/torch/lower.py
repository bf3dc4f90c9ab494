# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Traces to a model: declarations, bodies, and the walk over a trace's nodes in each body.

A value of one body cannot be used in another one, so a trace is walked again for each, as far as the body needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy
import torch

from .errors import Refused, TraceError
from .extents import Extent, Shape, fixed
from .operators import OPERATORS
from .placeholders import DTYPES, read, shape_text
from .reduce import over
from .signature import CHILDREN, NODES
from .tensor import Item, Tensor, filled, join, materialize, real, whole
from .trace import Trace, operator_name, place

if TYPE_CHECKING:
    from torch.fx import Node

    from .emit import Emitter, Value
    from .layers import Recurrent
    from .signature import States, Structure

_RESERVED = {"model", "structure", "input", "edge", "param", "state", "case", "def", "traversal", "leaf", "inner", "node",
             "output", "at", "labels", "children", "for", "in"}


# A state that a traversal carries: its shape, and what gives it in a body.
Carried = tuple[tuple[int, ...], Callable[["Body"], Tensor]]


class Model:
    """A model that is being built.  `builder` is an Emitter; `weights` collects {name: tensor} of what is used."""

    def __init__(self, builder: Emitter, structure: Structure, states: States,
                 tensors: dict[str, torch.Tensor]) -> None:
        self.builder, self.structure, self.states, self.tensors = builder, structure, states, tensors
        self.weights: dict[str, torch.Tensor] = {}
        self.declared: dict[str, tuple[str, Shape, Value]] = {}
        self.kept: dict[Node, tuple[str, int | None]] = {}  # the state that holds what a node computes, and the axis of nodes
        self.recurrent: dict[Node, Recurrent] = {}
        self.trace: Trace | None = None
        self.down, self.traversals = False, 0

    # --- declarations, when they are first used ---

    def _declare(self, kind: str, name: str, shape: Shape, make: Callable[[], Value]) -> Value:
        known = self.declared.get(name)
        if known is None:
            known = self.declared[name] = (kind, shape, make())
        if known[:2] != (kind, shape):
            raise TraceError(f"'{name}' is used as two things: {known[0]} [{shape_text(known[1])}] and "
                             f"{kind} [{shape_text(shape)}]", "give one of them another name")
        return known[2]

    def constant(self, tensor: torch.Tensor) -> str:
        """The name of a parameter that has the values of a tensor which is none of the module's."""
        names = [n for n in self.tensors if n.startswith("constant.")]
        same = (n for n in names if torch.equal(self.tensors[n], tensor))
        name = next(same, f"constant.{len(names)}")
        self.tensors[name] = tensor
        return name

    def parameter(self, name: str) -> Value:
        tensor = self.tensors[name]
        if tensor.dtype != torch.float32:
            raise Refused(f"the parameter '{name}' is {tensor.dtype}", "call float() on the module")
        own = self.name_of(name)
        self.weights[own] = tensor
        return self._declare("parameter", own, tuple(tensor.shape), lambda: self.builder.param(own, shape_text(tensor.shape)))

    def name_of(self, name: str) -> str:
        """The name of a parameter in the model: its own, if the language can say it and no state has it."""
        owner, _, state = name.partition(".")
        taken = name in self.states or (state in self.states and owner in self.structure.names)
        return f"p.{name}" if taken or name in _RESERVED or not re.match(r"[A-Za-z_]", name) else name

    def token(self, name: str) -> Value:
        return self._declare("token", name, (), lambda: self.builder.token(name))

    def input(self, name: str, shape: Shape, dtype: str) -> Value:
        return self._declare("input", name, shape, lambda: self.builder.input(name, shape_text(shape, dtype)))

    # --- traversals ---

    def traverse(self, direction: str, states: States) -> None:
        """Begins a traversal with its states."""
        if self.traversals or direction == "down":
            self.builder.traversal(direction)
        self.traversals += 1
        self.down = direction == "down"
        for name, shape in states.items():
            self.builder.state(name, shape_text(shape))

    def bodies(self) -> Iterator[Body]:
        """The bodies of a sequence's traversal, each as the one that is written."""
        assert self.trace is not None
        for kind in ("root", "below") if self.down else ("leaf", "inner"):
            self.builder.body(kind)
            yield Body(self, self.trace, kind)

    def carry(self, states: Mapping[str, Carried], kept: Iterable[str] = ()) -> None:
        """A traversal with states {name: (shape, function of a body that gives a Tensor)} that are what these give at a
        sequence's first node or, of `kept`, at the node itself."""
        self.traverse("up", {name: shape for name, (shape, _) in states.items()})
        for body in self.bodies():
            for name, (shape, give) in states.items():
                own = body.is_first or name in kept
                body.assign(name, shape, give(body) if own else whole(body.before(name), shape))


class Body:
    """One body of a model in which the nodes of a trace become values.

    `kind`: "leaf", "inner", "root", "below", "node output" or "root output".  `reading` says what tensors along the nodes
    are: "here", the value at the node at hand, or "nodes", that of each node in turn."""

    def __init__(self, model: Model, trace: Trace, kind: str) -> None:
        self.model, self.builder, self.trace, self.kind = model, model.builder, trace, kind
        self.is_first = kind in ("leaf", "root")
        self.at_root = kind == "root output"
        self.reading = "nodes" if self.at_root else "here"
        self.known: dict[Node, Any] = {}
        self.out = filled(0.0)  # in its shape and type what the operator that is lowered returns

    # --- walking the trace ---

    def value(self, node: Any) -> Any:
        """What a node of the trace is here."""
        if not isinstance(node, torch.fx.Node):
            return node
        for each in self._needed(node):
            try:
                self.known[each] = self._compute(each)
            except Refused as error:
                raise TraceError(error.message, error.hint, place(each), operator_name(each)) from None
        return self.known[node]

    def _needed(self, node: Node) -> list[Node]:
        """The nodes that are not known and that this one needs, and itself, in the order of the graph."""
        needed, todo = set(), [node]
        while todo:
            each = todo.pop()
            if each in needed or each in self.known:
                continue
            needed.add(each)
            if each not in self.model.recurrent and not self._is_kept(each) and not self._picks(each):
                todo.extend(each.all_input_nodes)
        return [n for n in self.trace.graph.nodes if n in needed]

    def _is_kept(self, node: Node) -> bool:
        return node in self.model.kept and self.kind.endswith("output")

    def _compute(self, node: Node) -> Any:
        if self._is_kept(node):
            return self._kept(node)
        if node.op == "placeholder":
            return read(self, node)
        if node in self.model.recurrent:
            return self.model.recurrent[node].output(self)
        return self._pick(node) if self._picks(node) else self._call(node)

    def _call(self, node: Node) -> Any:
        self.place(node)
        if not operator_name(node):
            return self._python(node)
        name = operator_name(node)
        if name == "aten.sym_size":
            source, axis = node.args
            assert isinstance(source, torch.fx.Node) and isinstance(axis, int)
            return self.shape_of(source.meta["val"])[axis]
        if name not in OPERATORS:
            raise Refused(f"the operator {name} has no lowering", "compute it by operators of the table (python/espalier/torch)")
        self.out = self._foreseen(node)
        return OPERATORS[name](self, **self._arguments(node))

    def _python(self, node: Node) -> Any:
        if getattr(node.target, "__name__", "") == "getitem":
            return self.value(node.args[0])[node.args[1]]
        return str(node.meta["val"].node.expr) if isinstance(node.meta["val"], torch.SymInt) else node.meta["val"]

    def _arguments(self, node: Node) -> dict[str, Any]:
        """The operator's arguments by the names of its schema, as far as they are given."""
        assert isinstance(node.target, torch._ops.OpOverload)
        names = [a.name for a in node.target._schema.arguments]
        given = {**dict(zip(names, node.args)), **node.kwargs}
        return {n: torch.fx.map_arg(v, self.value) if isinstance(v, (torch.fx.Node, list, tuple)) else v
                for n, v in given.items() if v is not None}

    def _foreseen(self, node: Node) -> Tensor:
        value = node.meta["val"]
        value = value[0] if isinstance(value, (list, tuple)) else value
        if not hasattr(value, "dtype"):
            return filled(0.0)
        return Tensor(self.shape_of(value), dtype=DTYPES.get(value.dtype, "f32"))

    def shape_of(self, value: torch.Tensor) -> Shape:
        return tuple(n if isinstance(n, int) else str(n.node.expr) for n in value.shape)

    def place(self, node: Node) -> None:
        """Diagnostics about the calls that follow are about this node's line."""
        file, line = place(node)
        if file:
            self.builder.at(file, line)

    # --- what lowerings ask for ---

    def count(self, extent: Extent) -> Tensor:
        """An extent as a tensor: a number, or how many children or nodes there are, as in "s27" and "s27 + 1"."""
        if isinstance(extent, int):
            return filled(float(extent))
        expression = sympy.sympify(extent)
        symbol = next(iter(expression.free_symbols))
        factor, rest = expression.coeff(symbol), expression.subs(symbol, 0)
        if expression != factor * symbol + rest:
            raise Refused(f"the number of children or nodes is computed with: {extent}", "add to it or multiply it")
        one = Item(self.builder.number(1.0), NODES if self.trace.axis == NODES else CHILDREN)
        value = over(self, "sum", one)
        if factor != 1:
            value = self.builder.call("*", self.builder.number(float(factor)), value)
        if rest != 0:
            value = self.builder.call("+", value, self.builder.number(float(rest)))
        return Tensor((), (), None, (Item(value),))

    def _picks(self, node: Node) -> bool:
        """Whether an operator at the root picks one node of a sequence."""
        return self.at_root and self.trace.axis == NODES and picked(node) is not None

    def _pick(self, node: Node) -> Tensor:
        source, n = node.args[0], picked(node)
        assert isinstance(source, torch.fx.Node)
        if n not in (0, -1):
            raise Refused("one node is picked of any number of them", "pick the first or the last one")
        shape = self.shape_of(node.meta["val"])
        if n == 0:
            return whole(self.builder.get(first_name(node)), shape)
        here: Tensor = Body(self.model, self.trace, "node output").value(source)
        assert here.stack is not None
        return replace(here, shape=shape, stack=None, items=(Item(here.value),),
                       kept=tuple(a - (a > here.stack) for a in here.kept))

    def at_node(self, node: Node) -> Tensor:
        """What a tensor along the nodes of a sequence is at the node at hand, a vector."""
        tensor: Tensor = self.value(node)
        if tensor.stack is None or tensor.items[0].each != "here":
            raise Refused("a layer runs along an axis that is not that of the nodes", 'describe its input: "x[nodes, 1, 300]"')
        tensor = replace(tensor, stack=None, items=(Item(tensor.value),))
        if len(tensor.kept) > 1:
            raise Refused("a layer runs over minibatches", "give one sequence: an axis of 1 for the minibatch")
        size = fixed(tensor.shape[-1])
        return Tensor((size,), () if not tensor.kept else (0,), None, tensor.items)

    def state(self, name: str) -> Value:
        return self.builder.member(name) if self.reading == "nodes" else self.builder.get(name)

    def before(self, name: str) -> Value:
        """A state of the node before this one in the direction of the traversal."""
        return self.builder.parent(0, name) if self.model.down else self.builder.child(0, name)

    def _kept(self, node: Node) -> Tensor:
        shape, axis = self.shape_of(node.meta["val"]), self.model.kept[node][1]
        kept = tuple(i for i, n in enumerate(shape) if n != 1 and i != axis)
        return Tensor(shape, kept, axis, (Item(self.state(self.model.kept[node][0]), self.reading),))

    # --- results ---

    def assign(self, state: str, shape: Shape, tensor: Tensor) -> None:
        self.builder.assign(state, self.plain(tensor, shape, f"the state '{state}'"))

    def plain(self, tensor: Tensor, shape: Shape | None, what: str) -> Value:
        """The value of a tensor that is to have a shape, but for axes of 1."""
        own = tuple(n for n in tensor.shape if n != 1)
        if shape is not None and own != tuple(n for n in shape if n != 1):
            raise Refused(f"{what} is computed with the shape [{shape_text(tensor.shape)}]",
                          f"it is to have the shape [{shape_text(shape)}]")
        tensor = materialize(self.builder, tensor) if tensor.number is not None and shape is not None else tensor
        tensor = join(self.builder, tensor)
        axes = tuple(i for i, n in enumerate(tensor.shape) if n != 1)
        if shape is None or tensor.kept not in (axes[len(axes) - k:] for k in range(len(axes) + 1)):
            tensor = real(self.builder, tensor, axes)
        return tensor.value


def first_name(node: Node) -> str:
    """The state that has what a node selects of the first node."""
    return f"{node.name}_first"


def axis_of(node: Node) -> int | None:
    """The axis along children or nodes of what a node of a trace computes, or None."""
    shape = getattr(node.meta.get("val"), "shape", ())
    return next((i for i, n in enumerate(shape) if not isinstance(n, int)), None)


def picked(node: Node) -> int | None:
    """Which element along that axis is picked of it, or None."""
    if operator_name(node) != "aten.select":
        return None
    source, axis, n = node.args
    assert isinstance(source, torch.fx.Node) and isinstance(axis, int)
    if axis_of(source) is None or axis % source.meta["val"].dim() != axis_of(source):
        return None
    return n if isinstance(n, int) else None
