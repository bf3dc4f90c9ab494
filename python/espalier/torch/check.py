# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Whether a model computes what PyTorch does: on small structures with random inputs, before it is handed out."""

import random
from dataclasses import dataclass, field

import torch

from .errors import TraceError
from .signature import build
from .trace import TYPES, place_of


class Node(dict):
    """A node as espalier.Model takes it, {"x": ..., "children": [...]}, told apart by identity."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other):
        return self is other


def ordered(root):
    """The nodes of a structure, children first, as results number them."""
    found, known = [], set()

    def visit(node):
        if node in known:
            return
        known.add(node)
        for child in node["children"]:
            visit(child)
        found.append(node)
    visit(root)
    return found


def compare(model, task, tolerance):
    """Raises TraceError with the largest difference if one is above `tolerance` * (1 + |PyTorch's|)."""
    generator = random.Random(0)
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            for shape, root in task.structures():
                _fill(model, root, generator)
                _compare(model, task, shape, root, tolerance)
    finally:
        torch.random.set_rng_state(state)


def _fill(model, root, generator):
    for node in ordered(root):
        for each in model.inputs:
            if each.is_token or not each.shape and each.dtype in ("i32", "i64"):
                node[each.name] = generator.randrange(each.limit or 4)
            else:
                dtype = TYPES[each.dtype]
                value = torch.randn(each.shape) if each.dtype == "f32" else torch.randint(2, each.shape).to(dtype)
                node[each.name] = value.numpy() if each.shape else value.item()


def _compare(model, task, shape, root, tolerance):
    result = model([root])[0]
    worst = (0.0, "")
    for what, name, expected in task.expected(root):
        own = torch.tensor(result.state(name) if what == "state" else result[name]).reshape(expected.shape)
        difference = ((own - expected).abs() / (1 + expected.abs())).nan_to_num(nan=float("inf"))
        difference[own.isnan() & expected.isnan()] = 0
        worst = max(worst, (float(difference.max()) if difference.numel() else 0.0, f"{what} '{name}'"))
    task.differences[shape] = worst[0]
    if worst[0] > tolerance:
        raise TraceError(f"the {worst[1]} differs from PyTorch's by {worst[0]:.3g} on {shape} (tolerance {tolerance:g})",
                         "does the function depend on how many children there are, on random numbers, or on state of its own?",
                         place_of(task.function))


def _node(*children):
    return Node(children=list(children))


def _chain(n):
    node = _node()
    for _ in range(n - 1):
        node = _node(node)
    return node


@dataclass
class Cell:
    """A function at one node.  `lone`: how many children of zeros a leaf has where nodes have any number of them;
    `outputs`: {name: (Output, its arguments)}."""

    model: object
    function: object
    arguments: tuple
    leaf: object
    leaf_arguments: tuple
    lone: int
    outputs: dict
    differences: dict = field(default_factory=dict)

    def structures(self):
        """(what it is, the root)"""
        slots = self.model.structure.slots
        yield "one node", _node()
        if slots == 1:
            yield "a sequence of 5 nodes", _chain(5)
            return
        if slots is None:
            yield "a chain of 3 nodes", _chain(3)
            yield "a bushy tree", _node(_node(), _node(_chain(3), _node()), _node(*(_node() for _ in range(4))))
        else:
            full = lambda *deeper: _node(*deeper, *(_node() for _ in range(slots - len(deeper))))
            yield "a small tree", full()
            yield "a deep tree", full(full(full()), full())
        if self.model.structure.kind == "dag":
            shared = _node(*(_node() for _ in range(slots or 3)))
            yield "a graph with a shared node", _node(*[_node(*[shared] * (slots or 2)) for _ in range(slots or 2)])

    def expected(self, root):
        """(what, name, tensor) of all states and outputs."""
        nodes, states = ordered(root), {}
        for node in nodes:
            states[node] = self._state(node, states)
        for name, shape in self.model.states.items():
            yield "state", name, torch.stack([states[n][name].reshape(shape) for n in nodes])
        for name, (output, arguments) in self.outputs.items():
            rows = [self._output(output, arguments, n, nodes, states) for n in ([root] if output.at == "root" else nodes)]
            yield "output", name, rows[0] if output.at == "root" else torch.stack(rows)

    def _state(self, node, states):
        is_leaf = not node["children"]
        function, arguments = (self.leaf, self.leaf_arguments) if is_leaf else (self.function, self.arguments)
        result = function(*build(arguments, lambda a: self._argument(a, node, states)))
        if isinstance(result, dict):
            return result
        return dict(zip(self.model.states, [result] if isinstance(result, torch.Tensor) else result))

    def _argument(self, argument, node, states):
        if argument.kind in ("child", "children"):
            return self._children(argument, node, states)
        return carried(self.model, argument, [node]).reshape(argument.shape)

    def _children(self, argument, node, states):
        shape = self.model.states[argument.name]
        of = [states[child][argument.name].reshape(shape) for child in node["children"]]
        slots = self.model.structure.slots
        if not of:
            of = [torch.zeros(shape)] * (self.lone if slots is None else slots)
        if argument.kind == "child":
            return of[argument.slot].reshape(argument.shape)
        stacked = torch.stack(of) if of else torch.zeros(0, *shape)
        return stacked.reshape([len(of) if isinstance(n, str) else n for n in argument.shape])

    def _output(self, output, arguments, node, nodes, states):
        def value(argument):
            if argument.kind == "nodes":
                stacked = torch.stack([states[n][argument.name] for n in nodes])
                return stacked.reshape([len(nodes) if isinstance(n, str) else n for n in argument.shape])
            return states[node][argument.name].reshape(argument.shape)
        result = output.function(*build(arguments, value))
        return result[0] if isinstance(result, (tuple, list)) else result


def carried(model, argument, nodes):
    """What nodes carry, as a tensor with a row for each."""
    if argument.kind == "row":
        return model.tensors[argument.name][[n[argument.token] for n in nodes]]
    return torch.stack([torch.as_tensor(n[argument.name]) for n in nodes])


@dataclass
class Sequence:
    """A module over a whole sequence; `results`: {name: node of the trace}."""

    model: object
    function: object
    arguments: tuple
    trace: object
    results: dict
    differences: dict = field(default_factory=dict)

    def structures(self):
        for n in (1, 2, 6):
            yield f"a sequence of {n} nodes", _chain(n)

    def expected(self, root):
        nodes = ordered(root)

        def value(argument):
            rows = carried(self.model, argument, nodes)
            return rows.reshape([len(nodes) if isinstance(n, str) else n for n in argument.shape])
        result = self.function(*build(self.arguments, value))
        found = _leaves(result)
        names = {id(n): name for name, n in self.results.items()}
        for tensor, node in zip(found, _leaves(self.trace.results)):
            if id(node) in names:
                yield "output", names[id(node)], _nodes_first(tensor, node)


def _leaves(result):
    if isinstance(result, dict):
        return [leaf for each in result.values() for leaf in _leaves(each)]
    if isinstance(result, (tuple, list)):
        return [leaf for each in result for leaf in _leaves(each)]
    return [result]


def _nodes_first(tensor, node):
    axis = next((i for i, n in enumerate(node.meta["val"].shape) if not isinstance(n, int)), None)
    return tensor if axis is None else tensor.movedim(axis, 0)
