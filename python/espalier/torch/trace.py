# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""A function of PyTorch as a graph of ATen operators, by torch.export in its strict mode.

torch.export and not torch.fx, because the number of children stays a symbol in it, in strict mode even through
`len(child_h)` and `child_h.size(0)`; because its operators are ATen's, which are documented and stable, whichever of
their many spellings in Python a module uses; and because each carries the line of Python it came from.

nn.LSTM, nn.GRU and nn.RNN would be unrolled over a number of steps.  While a function is traced they are one operator,
`espalier::recurrent`, which layers.py lowers to traversals.
"""

import inspect
import io
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx import Node

from .errors import Place, TraceError
from .operators import OPERATORS
from .signature import CHILDREN, NODES, Argument, build, flatten

_HERE = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
TYPES = {"f32": torch.float32, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool, "token": torch.int64}
# What lower.py and sequence.py know, and assertions, whose results nothing uses.
_OWN = ("espalier.recurrent", "aten.sym_size", "aten._assert_tensor_metadata", "aten._assert_scalar")
_EXAMPLE = {CHILDREN: 3, NODES: 5}  # Extents that example tensors have along an axis that is a symbol.


@torch.library.custom_op("espalier::recurrent", mutates_args=())
def recurrent(mode: str, input: torch.Tensor, hx: list[torch.Tensor], weights: list[torch.Tensor], layers: int,
              bidirectional: bool, batch_first: bool, biases: bool, projected: int) -> list[torch.Tensor]:
    """What nn.LSTM, nn.GRU and nn.RNN compute: the output, the last h, and of an LSTM the last c."""
    raise NotImplementedError("espalier::recurrent stands in a trace; it computes nothing")


@recurrent.register_fake
def _(mode: str, input: torch.Tensor, hx: list[torch.Tensor], weights: list[torch.Tensor], layers: int,
      bidirectional: bool, batch_first: bool, biases: bool, projected: int) -> list[torch.Tensor]:
    size, directions = weights[1].shape[1], 1 + bidirectional
    batch = [] if input.dim() == 2 else [input.shape[0 if batch_first else 1]]
    last = [input.new_empty([layers * directions, *batch, size]) for _ in range(2 if mode == "LSTM" else 1)]
    return [input.new_empty([*input.shape[:-1], size * directions]), *last]


def _forward(self: Any, input: torch.Tensor, hx: Any = None) -> tuple[torch.Tensor, Any]:
    given = [] if hx is None else [hx] if isinstance(hx, torch.Tensor) else list(hx)
    result = torch.ops.espalier.recurrent(self.mode, input, given, self._flat_weights, self.num_layers,
                                          self.bidirectional, self.batch_first, self.bias, self.proj_size)
    return result[0], ((result[1], result[2]) if self.mode == "LSTM" else result[1])


class _Call(nn.Module):
    """torch.export takes a module; this one calls the function, beside the module that has its parameters."""

    def __init__(self, function: Callable[..., Any], module: nn.Module) -> None:
        super().__init__()
        self.module, self.function = module, function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@dataclass(frozen=True)
class Trace:
    """`inputs`: placeholder -> Argument; `parameters`: placeholder -> name of a parameter; `constants`: placeholder ->
    tensor; `results`: nested tuples, lists and dicts of nodes; `axis`: what a symbol in shapes counts, CHILDREN or NODES."""

    graph: torch.fx.Graph
    inputs: dict[Node, Argument]
    parameters: dict[Node, str | None]
    constants: dict[Node, torch.Tensor]
    results: Any
    axis: str | None


def parameters_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """{name: tensor} of all parameters and buffers, tied ones under each of their names."""
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def positional(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """`arguments`, a dict by name, in the order of the function's parameters; those left out have their default."""
    target = function.forward if isinstance(function, nn.Module) else function
    known, ordered = inspect.signature(target).parameters, []
    for extra in set(arguments) - set(known):
        raise TraceError(f"the function has no argument '{extra}'", f"it has {', '.join(known)}", place_of(function))
    for name, parameter in known.items():
        if name not in arguments and parameter.default is inspect.Parameter.empty:
            raise TraceError(f"nothing says what the argument '{name}' is", f'add it: arguments={{"{name}": "x[300]"}}',
                             place_of(function))
        ordered.append(arguments.get(name, parameter.default))
    return tuple(ordered)


def trace(function: Callable[..., Any], module: nn.Module, arguments: Any, children: int | None = None) -> Trace:
    """Traces `function` with `arguments`, nested tuples of Argument; `children`: how many there are, None = a symbol."""
    tensors = build(arguments, lambda a: _example(a, children))
    shapes = _dimensions(arguments, children)
    with _quiet(), _recurrent():
        try:
            program = torch.export.export(_Call(function, module), tensors, dynamic_shapes=(shapes,), strict=True)
        except TraceError:
            raise
        except Exception as error:  # Dynamo raises errors of many kinds.
            raise _explain(error, function) from error
    return _read(_functional(program), function, module, arguments, children)


def operator_name(node: Node) -> str:
    """"aten.linear" of a node that calls an operator, without its overload; "" of others."""
    return node.target._schema.name.replace("::", ".") if isinstance(node.target, torch._ops.OpOverload) else ""


def _functional(program: ExportedProgram) -> ExportedProgram:
    """The program without operators that change tensors in place, and without those that have no lowering but a
    decomposition by PyTorch into some that have."""
    made = program
    for _ in range(4):  # Decompositions use operators that are decomposed in their turn.
        unknown = _unknown(made)
        ways = {**torch._decomp.get_decompositions(unknown), **_ways_of_export(unknown)}
        if not unknown or not ways and made is not program:
            break
        made = _decompose(made, ways)
    # What is refused is named as the function has it.
    return _decompose(program, {}) if _unknown(made) else made


def _decompose(program: ExportedProgram, ways: Mapping[Any, Any]) -> ExportedProgram:
    try:
        decomposed: ExportedProgram = program.run_decompositions(ways)
        return decomposed
    except Exception:  # AOTAutograd fails on what it cannot make functional: the operator is refused by its name.
        return program


def _unknown(program: ExportedProgram) -> list[Any]:
    called = {n.target: operator_name(n) for n in program.graph.nodes if operator_name(n)}
    return [op for op, name in called.items() if name not in OPERATORS and name not in _OWN]


def _ways_of_export(operators: Iterable[Any]) -> dict[Any, Any]:
    known = torch.export.default_decompositions()
    return {op: known[op] for op in operators if op in known}


def _example(argument: Argument, children: int | None) -> torch.Tensor:
    extents = {**_EXAMPLE, **({} if children is None else {CHILDREN: children})}
    shape = [extents[n] if isinstance(n, str) else n for n in argument.shape]
    if argument.dtype == "f32":
        return torch.randn(shape)
    return torch.zeros(shape, dtype=TYPES[argument.dtype])


def _dimensions(arguments: Any, children: int | None) -> Any:
    """dynamic_shapes of torch.export."""
    symbols = {word: torch.export.Dim(word, min=2) for word in _EXAMPLE}

    def of(spec: Any) -> Any:
        if isinstance(spec, tuple):
            return tuple(of(s) for s in spec)
        if not isinstance(spec, Argument):
            return None
        return {i: symbols[n] for i, n in enumerate(spec.shape)
                if isinstance(n, str) and not (n == CHILDREN and children is not None)}
    return of(arguments)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what Dynamo logs and prints about errors that are raised as well."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(level)


@contextmanager
def _recurrent() -> Iterator[None]:
    with mock.patch.object(nn.LSTM, "forward", _forward), mock.patch.object(nn.GRU, "forward", _forward), \
            mock.patch.object(nn.RNN, "forward", _forward):
        yield


def _read(program: ExportedProgram, function: Callable[..., Any], module: nn.Module, arguments: Any,
          children: int | None) -> Trace:
    names = {id(t): n for n, t in reversed(parameters_of(module).items())}
    signature = program.graph_signature
    targets = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    nodes = {n.name: n for n in program.graph.nodes}
    held, parameters = {**program.constants, **program.state_dict}, {}
    for placeholder, target in targets.items():
        name = names.get(id(held[target]))
        if name is None and nodes[placeholder].users:
            raise TraceError(f"'{target}' is no parameter of the module",
                             "pass as module= the one that holds all that the function uses", place_of(function))
        parameters[nodes[placeholder]] = name
    constants = {nodes[p]: held[t] for p, t in signature.inputs_to_lifted_tensor_constants.items()}
    if signature.user_inputs_to_mutate or signature.buffers_to_mutate:
        raise TraceError("an argument or a buffer is changed in place", "write x = x + y in place of x += y", place_of(function))
    leaves = flatten(arguments)
    inputs = {nodes[p]: leaf for p, leaf in zip(signature.user_inputs, leaves) if isinstance(leaf, Argument)}
    results = program.call_spec.out_spec.unflatten([nodes.get(n) for n in signature.user_outputs])
    words = {n for leaf in inputs.values() for n in leaf.shape if isinstance(n, str)}
    if len(words) > 1:
        raise TraceError("arguments are stacked along children and along nodes",
                         "compute what needs all nodes in an output of its own", place_of(function))
    axis = next(iter(words), None)
    return Trace(program.graph, inputs, parameters, constants, results, axis)


# --- places in Python ---

def place_of(function: Callable[..., Any]) -> Place:
    """(file, line) of a function or module."""
    target = function.forward if isinstance(function, nn.Module) else function
    code = getattr(inspect.unwrap(target), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else (None, 0)


def _users(frames: Sequence[tuple[str, Any]]) -> Place:
    """The innermost frame that is neither PyTorch's nor ours."""
    return next(((f, int(n)) for f, n in reversed(frames) if not f.startswith(_HERE) and os.sep in f
                 and not f.startswith("torch" + os.sep)), (None, 0))


def place(node: Node) -> Place:
    """(file, line) of the Python that a node of the graph came from."""
    return _users(_FRAME.findall(node.meta.get("stack_trace") or ""))


def _explain(error: Exception, function: Callable[..., Any]) -> TraceError:
    """A TraceError of what torch.export raised."""
    frames = [(f.filename, f.lineno) for f in getattr(error, "real_stack", None) or []]
    text = str(error)
    where = _users(frames or _FRAME.findall(text))
    where = where if where[0] else place_of(function)
    if "onstraint" in text or "specialized" in text:
        return TraceError("what this computes depends on the number of children or nodes, or takes them one by one",
                          "compute with all at once: sum, max, softmax, matmul along their axis, no loop and no `if`", where)
    if "Data-dependent" in text or "data-dependent" in text:
        return TraceError("control flow depends on values", "choose by torch.where, which computes both sides", where)
    return TraceError("torch.export cannot trace this: " + text.strip().split("\n")[0],
                      "the exception that this one was raised from has the details", where)
