# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""From a function or module of PyTorch to a model that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

import torch
from torch import nn

from .. import _native
from .. import model as core
from . import check, lower
from .emit import Emitter
from .errors import Refused, TraceError
from .lower import Body
from .sequence import lower_sequence, name_results
from .signature import Argument, Notation, States, flatten, parse_states, parse_structure
from .trace import Trace, parameters_of, place_of, positional, trace


@dataclass(frozen=True)
class Output:
    """An output: what `function` computes of its arguments, states of the node ("h") or of all nodes ("nodes.h"), `at` the
    "root" or "every node"; `labels`: the names of classes."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    at: str = "root"
    labels: tuple[str, ...] = ()


def output(function: Callable[..., Any], *arguments: Any, at: str = "root", labels: Iterable[str] = ()) -> Output:
    """An Output: output(module.linear, "h", at="every node")."""
    return Output(function, arguments, at, tuple(labels))


@dataclass(frozen=True)
class Leaf:
    """A function for leaves with its own arguments."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]


# What `outputs` of `compile` can be: of cells by name, of whole sequences names in the order of what is returned.
Outputs = Union[Mapping[str, Union[str, Output, "tuple[Any, ...]"]], Iterable[Union[str, None]], str, None]


class Model(core.Model):
    """A model that was made of a function: `text` is it in the language, `weights` the tensors that it needs, by name."""

    text: str
    weights: dict[str, torch.Tensor]


def compile(
    function: Callable[..., Any],
    structure: str,
    arguments: Mapping[str, Any],
    states: str = "",
    *,
    leaf: Leaf | str | None = None,
    outputs: Outputs = None,
    module: nn.Module | Mapping[str, nn.Module] | None = None,
    tolerance: float | None = 1e-4,
    name: str | None = None,
    context: _native.Context | None = None,
    **options: Any,
) -> Model:
    """A model of what `function` computes at one node, or of a module over a whole sequence.

        function     what a node computes of its input and the states of its children: a function, a method or a module
        structure    "tree(*)", "tree(2)", "tree(left, right)", "dag(*)", "sequence", ...
        arguments    {"x": "emb.weight[word]", "child_h": "children.h"}: what its arguments are (signature.py has the notation)
        states       "h[150], c[150]": what it returns, in this order, or as a dict with these keys; none for a module over a whole
                     sequence, whose results are outputs
        leaf         of leaves: None = the same function, without children where a node has any number of them, else with states
                     of zeros; "zeros" = with one child of zeros; leaf(function, {...}) = another function
        outputs      {"logits": (module.linear, "h")} at the root, output(...) with more to say, "h" for a state itself; of a whole
                     sequence the names of what is returned: "tags" or ["tags", "last"]
        module       that holds the parameters: names in the model are those of its state_dict(); by default the function, if it is
                     a module, or the module it is a method of; other tensors that the function uses get names constant.NAME
        tolerance    how far results may differ from PyTorch's, absolutely and relatively; None = they are not compared
        name         of the model
        context      and `options`: as espalier.load takes them

    The model is an espalier.Model that also has its text, and its weights.  Raises TraceError when something has
    no counterpart or results differ, espalier.InputError when the model is refused.
    """
    module = _module_of(function, module)
    parsed, named = parse_structure(structure), parse_states(states)
    tensors = parameters_of(module)
    notation = Notation(parsed, named, {n: tuple(t.shape) for n, t in tensors.items()})
    read = notation.read(positional(function, arguments))
    lowered = lower.Model(Emitter(name or type(module).__name__, parsed.text, context), parsed, named, tensors)
    task: check.Cell | check.Sequence
    if named:
        task = _lower_cell(lowered, function, module, notation, read, leaf, outputs)
    else:
        task = _lower_sequence(lowered, function, module, read, outputs, leaf)
    text = lowered.builder.finish()
    weights = {n: t.detach() for n, t in lowered.weights.items() if n in lowered.builder.declared}
    made = _with_text(core.load(text, weights, context=context, **options), str(text), weights)
    if tolerance is not None:
        check.compare(made, task, tolerance)
    return made


def _with_text(model: core.Model, text: str, weights: dict[str, torch.Tensor]) -> Model:
    model.__class__ = Model  # it has the same members, and is not loaded twice
    assert isinstance(model, Model)
    model.text, model.weights = text, weights
    return model


def _module_of(function: Callable[..., Any], module: nn.Module | Mapping[str, nn.Module] | None) -> nn.Module:
    module = module or (function if isinstance(function, nn.Module) else getattr(function, "__self__", None))
    if isinstance(module, Mapping):
        module = nn.ModuleDict(dict(module)).eval()
    if not isinstance(module, nn.Module):
        raise TraceError("it is not known which module has the parameters", "pass it: module=", place_of(function))
    if any(m.training for m in module.modules() if not isinstance(m, nn.ModuleDict)):
        raise TraceError("the module is in training mode", "call eval() on it: dropout is off when a model is served",
                         place_of(function))
    return module


# --- cells ---

def _lower_cell(model: lower.Model, function: Callable[..., Any], module: nn.Module, notation: Notation,
                read: tuple[Any, ...], leaf: Leaf | str | None, outputs: Any) -> check.Cell:
    model.traverse("up", model.states)
    inner = trace(function, module, read)
    _lower_body(model, "inner", inner, function)
    at_leaf, arguments, call = _leaf(model, function, module, notation, read, leaf, inner)
    _lower_body(model, "leaf", at_leaf, call)
    given = _outputs(model, outputs)
    model.builder.body("output")
    for each, wanted in given.items():
        _lower_output(model, module, notation, each, wanted)
    lone = 1 if leaf == "zeros" else 0
    return check.Cell(model, function, read, call, arguments, lone, {n: (o, notation.read(o.arguments)) for n, o in given.items()})


def _lower_body(model: lower.Model, kind: str, traced: Trace, function: Callable[..., Any]) -> None:
    model.builder.body(kind)
    body = Body(model, traced, kind)
    for state, node in _by_state(traced.results, model.states, function).items():
        try:
            body.assign(state, model.states[state], body.value(node))
        except Refused as error:
            raise TraceError(error.message, error.hint, place_of(function)) from None


def _leaf(model: lower.Model, function: Callable[..., Any], module: nn.Module, notation: Notation,
          read: tuple[Any, ...], leaf: Leaf | str | None,
          inner: Trace) -> tuple[Trace, tuple[Any, ...], Callable[..., Any]]:
    """The trace of leaves, and the arguments and the function that they are computed by."""
    if isinstance(leaf, Leaf):
        own = notation.read(positional(leaf.function, leaf.arguments))
        if any(isinstance(a, Argument) and a.kind in ("child", "children", "state", "nodes") for a in flatten(own)):
            raise TraceError("leaves have no children", "describe the arguments of the leaf's function by inputs",
                             place_of(leaf.function))
        return trace(leaf.function, module, own), own, leaf.function
    if leaf not in (None, "zeros"):
        raise TraceError(f"leaf={leaf!r}", 'it is None, "zeros" or leaf(function, {...})')
    if model.structure.slots is not None:
        return inner, read, function
    try:
        return trace(function, module, read, children=1 if leaf else 0), read, function
    except TraceError as error:
        raise TraceError(f"of a leaf, which has no children: {error.message}",
                         'describe leaves by leaf=, "zeros" or a function', (error.file, error.line)) from error


def _by_state(results: Any, states: States, function: Callable[..., Any]) -> dict[str, torch.fx.Node]:
    """{state: what the function returns for it}."""
    if isinstance(results, dict):
        found: dict[str, Any] = {s: results.get(s) for s in states}
    else:
        results = [results] if isinstance(results, torch.fx.Node) else list(results)
        found = dict(zip(states, results)) if len(results) == len(states) else {}
    if not found or not all(isinstance(n, torch.fx.Node) for n in found.values()):
        raise TraceError(f"what it returns does not fit the states {', '.join(states)}",
                         "name a state for each tensor that it returns, in that order", place_of(function))
    return found


def _outputs(model: lower.Model, outputs: Any) -> dict[str, Output]:
    """{name: Output} of what the user gave."""
    if outputs is None:
        state = next(iter(model.states))
        outputs = {f"root_{state}": state}
    made = {}
    for name, given in outputs.items():
        if isinstance(given, str):
            given = (lambda x: x, given)
        made[name] = given if isinstance(given, Output) else Output(given[0], tuple(given[1:]))
    return made


def _lower_output(model: lower.Model, module: nn.Module, notation: Notation, name: str, wanted: Output) -> None:
    read = notation.read(wanted.arguments)
    traced = trace(wanted.function, module, read)
    body = Body(model, traced, "root output" if wanted.at == "root" else "node output")
    results = traced.results
    results = results if isinstance(results, torch.fx.Node) or not isinstance(results, (tuple, list)) else results[0]
    try:
        value = body.plain(body.value(results), None, f"the output '{name}'")
    except Refused as error:
        raise TraceError(error.message, error.hint, place_of(wanted.function)) from None
    model.builder.output(name, value, wanted.at, wanted.labels)


# --- sequences ---

def _lower_sequence(model: lower.Model, function: Callable[..., Any], module: nn.Module, read: tuple[Any, ...],
                    outputs: Any, leaf: Leaf | str | None) -> check.Sequence:
    if model.structure.kind != "sequence" or leaf is not None:
        raise TraceError("a model without states is one over a whole sequence",
                         'name the states of a node, states="h[150]", or write structure="sequence"', place_of(function))
    traced = trace(function, module, read)
    names = name_results(traced.results, outputs, function)
    model.trace = traced
    lower_sequence(model, traced, names, function)
    return check.Sequence(model, function, read, traced, names)
