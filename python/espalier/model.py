# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Models that are ready to run."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, Union
from weakref import WeakKeyDictionary

from . import _adapt, _native, _onnx
from .builder import Builder
from .result import Result, StructureResult

if TYPE_CHECKING:
    from .profile import Profile
    from .service import AsyncService, Service

__all__ = ["Input", "Model", "Output", "Result", "State", "StructureResult", "load"]

_NO_WEIGHTS = "load() needs weights: only ONNX graphs and programs that were saved with weights have their own"
PathLike = Union[str, "os.PathLike[str]"]
MAGIC = b"espimg\r\n"  # of a saved program
_AT: dict[str | None, int] = {None: 0, "root": 1, "all": 2}
_BINARIZE: dict[str | None, int] = {None: 0, "left": 1, "right": 2}
_GRAPH: dict[str | None, int] = {"basic": 0, "enhanced": 1}


class Input(NamedTuple):
    """What nodes carry or, with `on_edges`, the edges to their children."""

    name: str
    is_token: bool
    dtype: str
    shape: tuple[int, ...]
    on_edges: bool
    limit: int  # tokens are below it; 0 = any
    within: float  # the largest magnitude of an element, which runs check; 0 = none is declared


class Output(NamedTuple):
    """What is computed of states, with the names of its classes where the model has them."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    at_root: bool  # a row for each structure, otherwise one for each node
    labels: tuple[str, ...]


class State(NamedTuple):
    """What each node hands to its parents."""

    name: str
    dtype: str
    shape: tuple[int, ...]


# --- contexts ---

_contexts: dict[int, _native.Context] = {}


def default_context(threads: int = 0) -> _native.Context:
    """The context of models that are loaded without one: one for the process, and another one after a fork.  `threads`: how many
    it has if it is made now; 0 = as many as the process may use processors."""
    here = os.getpid()
    if here not in _contexts:
        _contexts[here] = _native.Context(threads=threads)
    return _contexts[here]


# --- what load() takes ---


def _choose(what: str, choices: Mapping[str | None, int], given: Any) -> int:
    """The number of a word among the choices of an option."""
    if isinstance(given, (str, type(None))) and given in choices:
        return choices[given]
    raise ValueError(f"{what}: {given!r} is none of {', '.join(map(repr, choices))}")


def _is_buffer(source: Any) -> bool:
    try:
        memoryview(source)
    except TypeError:
        return False
    return True


def _is_saved(source: Any) -> bool:
    if not isinstance(source, (str, os.PathLike)):
        return _is_buffer(source)
    if "\n" in os.fspath(source):
        return False
    try:
        with open(source, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _read_model(context: _native.Context, source: Any) -> _native.ModelText:
    if isinstance(source, _native.ModelText):
        return source
    if isinstance(source, Builder):
        return source.finish()
    text = os.fspath(source)
    if "\n" in text:
        return _native.ModelText.parse(context, "model", text)
    return _native.ModelText.parse(context, text, None)


def _own_weights(model: _native.ModelText) -> _native.Weights:
    try:
        return model.weights()
    except _native.ArgumentError:
        raise TypeError(_NO_WEIGHTS) from None


def _read_weights(context: _native.Context, source: Any, decisions: _onnx.Decisions) -> _native.Weights | None:
    if source is None or isinstance(source, _native.Weights):
        return source
    if _onnx.is_graph(source):
        return _onnx.read(context, source, decisions).weights()
    if isinstance(source, Mapping):
        from ._arrays import pack_weights

        source = pack_weights(source)
    return _native.Weights(context, source)


def _listed_vocab(vocab: Any) -> Any:
    """The same, with lists of words in place of what can be read once."""
    if vocab is None or isinstance(vocab, (str, os.PathLike)):
        return vocab
    if isinstance(vocab, Mapping):
        return {name: _listed_vocab(of_input) for name, of_input in vocab.items()}
    words = list(vocab)
    for number, word in enumerate(words):
        if not isinstance(word, str) or "\n" in word or word.endswith("\r"):
            raise ValueError(f"vocab: word {number} is {word!r}; words are texts of one line")
    return words


def _read_vocab(context: _native.Context, source: Any) -> _native.Vocab:
    if isinstance(source, (str, os.PathLike)):
        return _native.Vocab(context, source)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.writelines(f"{word}\n" for word in source)
        file.flush()
        return _native.Vocab(context, file.name)


def _read_vocabs(context: _native.Context, vocab: Any, tokens: list[str]) -> dict[str, _native.Vocab]:
    """The vocabulary of each token input."""
    if vocab is None:
        return {}
    if not isinstance(vocab, Mapping):
        of_all = _read_vocab(context, vocab)
        return {name: of_all for name in tokens}
    unknown = sorted(set(vocab) - set(tokens))
    if unknown:
        raise ValueError(f"vocab: the model has no token input '{unknown[0]}'; it has {', '.join(tokens) or 'none'}")
    return {name: _read_vocab(context, of_input) for name, of_input in vocab.items()}


def load(
    model: Any,
    weights: Any = None,
    *,
    vocab: Any = None,
    context: _native.Context | None = None,
    at: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    schedule: str | None = None,
    math: str | None = None,
    rules: str | None = None,
    weights_as: str | None = None,
    precision: str | None = None,
    assume: str | None = None,
    accelerator: str | None = None,
    table_bytes: int = 0,
    continuous: bool = False,
    lazy: bool = False,
    columns: Mapping[str, str] | None = None,
    graph: str = "basic",
    collapse: bool = False,
    binarize: str | None = None,
    cut_labels: bool = False,
    sizes: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
    outputs: Iterable[str] | str | None = None,
) -> Model:
    """A model that is ready to run.

        model       the path of a model text (.ra), an ONNX file (.onnx) or one of TensorFlow Lite (.tflite), a text (which has newlines), a `Builder`, an ONNX graph in
                    memory (an onnx.ModelProto, an io.BytesIO, bytes), or a saved program: its path, or an object with its bytes.  Bytes that are read-only and begin at a multiple of 64 are used where they are and kept,
                    so that processes that map them share the weights; others are copied
        weights     the path of a safetensors file, its bytes, or a mapping from names to arrays or tensors; None for a program
                    that was saved with weights, and for an ONNX graph, which has its own.  Another ONNX file of the same graph will do
        vocab       the path of a vocabulary, a word a line, or the words; of all token inputs, or a mapping from inputs to these
        context     threads, memory and cache (`espalier.Context`); None = one that the process shares
        at          where outputs are computed: "root", "all" (at every node), None = as the model says
        backend     "llvm", "gccjit", "interpreter"; `target`, `schedule`, `math`, `rules`, `weights_as`, `precision`, `assume`, `accelerator`, `table_bytes`: see
                    esp_program_options in espalier.h
        continuous  whether the model is to serve requests that come one by one (`Model.submit`, `Model.stream`)
        lazy        rows of embeddings are read when a run first needs them: the first result comes sooner
        columns     of texts: from inputs to columns, such as {"tag": "upos"}; `graph` ("basic" or "enhanced", of CoNLL-U),
                    `collapse`, `binarize` ("left", "right") and `cut_labels`: see esp_treebank_options in espalier.h
        sizes       of an ONNX file: the sizes that its inputs leave open, such as {"batch": 1}; `constants`: values of inputs that
                    decide shapes, by name; `outputs`: names of the values that are outputs, instead of the graph's own (doc/onnx.md)
    """
    context = context or default_context()
    vocab = _listed_vocab(vocab)
    reading = (dict(columns or {}), _choose("graph", _GRAPH, graph), int(collapse), _choose("binarize", _BINARIZE, binarize), int(cut_labels))
    outputs = outputs if outputs is None or isinstance(outputs, str) else tuple(outputs)
    decisions = _onnx.Decisions(sizes, constants, outputs)
    is_graph = _onnx.is_graph(model)
    if not is_graph and _is_saved(model):
        if decisions and not _onnx.is_graph(weights):
            raise TypeError("sizes, constants and outputs are of ONNX graphs")
        bound = _read_weights(context, weights, decisions)
        program = _load_program(context, model, bound, lazy)
    else:
        text = _onnx.read(context, model, decisions) if is_graph or decisions else _read_model(context, model)
        if is_graph and isinstance(weights, Mapping):
            weights = _onnx.fit_weights(weights, text.weights())
        bound = _read_weights(context, weights, decisions) or _own_weights(text)
        program = _native.Program.compile(
            context, text, bound, lazy=lazy, at=_choose("at", _AT, at), backend=backend, target=target, schedule=schedule,
            math=math, rules=rules, table_bytes=table_bytes, weights_as=weights_as, precision=precision, assume=assume, continuous=continuous, accelerator=accelerator,
        )  # fmt: skip
    tokens = [name for name, is_token, *_ in program.inputs if is_token]
    vocabs = _read_vocabs(context, vocab, tokens)
    program.read(_adapt.structure, vocabs, *reading)
    return Model(program, bound, vocab, reading, decisions)


def _load_program(context: _native.Context, saved: Any, weights: _native.Weights | None, lazy: bool) -> _native.Program:
    try:
        return _native.Program.load(context, saved, weights, lazy)
    except _native.ArgumentError as error:
        if weights is None and "'weights' must not be NULL" in str(error):
            raise TypeError(_NO_WEIGHTS) from None
        raise


def _joined(batch: Any, arrays: dict[str, Any]) -> Any:
    """A minibatch, or arrays that came by the names of inputs."""
    if arrays and batch is not None:
        raise TypeError("arrays come by their names, or as a dict")
    return arrays or batch


class Model:
    """A compiled model with its weights.  Any number of threads may call it at once."""

    def __init__(self, program: _native.Program, weights: _native.Weights | None, vocab: Any, reading: tuple[Any, ...],
                 decisions: _onnx.Decisions = _onnx.Decisions()) -> None:
        self._program = program
        self._weights = weights
        self._vocab = vocab
        self._reading = reading
        self._decisions = decisions
        self.inputs = tuple(Input(*each) for each in program.inputs)
        self.outputs = tuple(Output(*each) for each in program.outputs)
        self.states = tuple(State(*each) for each in program.states)
        self._names = {each.name: number for number, each in enumerate(self.outputs)}
        self._services: WeakKeyDictionary[Any, AsyncService] = WeakKeyDictionary()
        self._state_names = {each.name: number for number, each in enumerate(self.states)}

    def __repr__(self) -> str:
        def shown(each: Input | Output) -> str:
            return each.name + (f"[{', '.join(map(str, each.shape))}]" if each.shape else "")

        inputs = ", ".join(each.name if each.is_token else shown(each) for each in self.inputs)
        kind = "without a structure" if self.structure == "none" else f"of a {self.structure}"
        return f"<espalier.Model {kind}: {inputs} -> {', '.join(map(shown, self.outputs))}>"

    def __call__(self, batch: Any = None, /, **arrays: Any) -> Result:
        """Runs a minibatch: a list, a generator or another iterator of structures, or a single structure.

        A structure is

        - nested tuples or lists, ((0, 1), 2): a tuple is an inner node, anything else a leaf that carries this word, number
          or array.  (At the top a list is a minibatch.)
        - a dict, {"word": "works", "children": [...]}: a node with what it carries, by input; what the edge to a child carries
          is among what the child carries, or in "edges", a list of dicts beside "children"
        - a text of brackets, CoNLL-U, JSON or lines of words (doc/structures.md), with any number of structures
        - a tree of nltk, a sentence of conllu, a directed graph of networkx whose edges lead to children
        - `espalier.Structures`: arrays
        - for a model of sequences a tuple or an array of what the elements carry

        A model without a structure, such as one of an ONNX file, is called with an array for each input, model(x=array) or
        model({"x": array}), by the names of the graph.  Arrays have the shapes of their inputs: they are one row.  Or all have an
        axis more before it: a row for each of its indices.  out["y"] has a row for each, out[0].root("y") is the first.
        """
        return Result(self._program.run(_joined(batch, arrays)), self)

    @property
    def structure(self) -> str:
        """What structures it takes: "sequence", "tree", "dag" or, of a feed-forward graph, "none"."""
        return self._program.structure

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions of the model."""
        return self._program.sizes

    @property
    def generation(self) -> int:
        """1, and one more with every swap."""
        return self._program.generation

    def prepare(self) -> Model:
        """Makes all of its code now, so that no run waits for the compiler."""
        self._program.prepare()
        return self

    def swap(self, weights: Any) -> None:
        """Exchanges the weights for others of the same shapes, while other threads run it; `weights` as `load` takes them.  Of an
        ONNX graph another file of it, or its tensors by name."""
        if self.structure == "none" and isinstance(weights, Mapping) and self._weights:
            weights = _onnx.fit_weights(weights, self._weights)
        bound = _read_weights(self._program.context, weights, self._decisions)
        if bound is None:
            raise TypeError("swap() needs weights")
        self._program.swap(bound)
        self._weights = bound

    def explain(self, json: bool = False, layers: bool = False) -> str:
        """What the model was rewritten to, and what that saves; or `layers`: operators before, loop nests after, which JSON always has."""
        return self._program.explain(json, layers)

    def dump(self, stage: str) -> str:
        """The program after a stage of the compiler; `espalier._native.dump_stages()` names them."""
        return self._program.dump(stage)

    def times(self) -> str:
        """Where the time of compiling went."""
        return self._program.times()

    def profile(self, batch: Any = None, /, **arrays: Any) -> Profile:
        """Runs a minibatch, or arrays by name, and records where the time goes.  Run it before, so that nothing is compiled
        meanwhile."""
        from .profile import Profile

        recorded = self._program.record(_joined(batch, arrays)).profile
        if recorded is None:
            raise _native.OutOfMemoryError("there was no memory for the record of the run")
        return Profile(recorded)

    # --- serving ---

    def service(self, **options: int) -> Service:
        """A service, for requests that come one by one: the model must have been loaded with continuous=True."""
        from .service import Service

        return Service(self, **options)

    async def submit(self, batch: Any = None, /, *, priority: int = 0, deadline: float | None = None, **arrays: Any) -> Result:
        """Submits a structure, a minibatch, or arrays by name (as a dict, where an input is called as an option is), to the service
        that the running event loop has of this model, and waits.  Requests that are under way at the same time are computed
        together.  `deadline`: seconds from now."""
        import asyncio

        loop = asyncio.get_running_loop()
        service = self._services.get(loop)
        if service is None:
            from .service import AsyncService

            service = self._services[loop] = AsyncService(self, loop)
        return await service.submit(_joined(batch, arrays), priority, deadline)

    # --- saving ---

    def save(self, path: PathLike, pack: bool = True) -> None:
        """Writes a program that runs without a compiler, with its weights (`pack`) or without."""
        self._program.save(path, self._weights if pack else None)

    def __bytes__(self) -> bytes:
        """The program with its weights, as `save` writes it and `load` takes it."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program"
            self.save(path)
            return path.read_bytes()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """The program is a buffer of its own, which pickle's protocol 5 lets others put where no copy is needed; words are
        carried along, as another machine may lack their file."""
        saved = bytes(self)
        return _unpickle, (PickleBuffer(saved) if int(protocol) >= 5 else saved, _carried_vocab(self._vocab), self._reading, self._decisions)


def _carried_vocab(vocab: Any) -> Any:
    if isinstance(vocab, Mapping):
        return {name: _carried_vocab(of_input) for name, of_input in vocab.items()}
    if isinstance(vocab, (str, os.PathLike)):
        return Path(vocab).read_bytes().decode().removesuffix("\n").split("\n")
    return vocab if vocab is None else list(vocab)


def _unpickle(saved: Any, vocab: Any, reading: tuple[Any, ...], decisions: _onnx.Decisions) -> Model:
    columns, graph, collapse, binarize, cut_labels = reading
    graphs, sides = {n: str(w) for w, n in _GRAPH.items()}, {n: w for w, n in _BINARIZE.items()}
    model = load(
        saved, vocab=vocab, columns=columns, graph=graphs[graph], collapse=bool(collapse), binarize=sides[binarize],
        cut_labels=bool(cut_labels),
    )  # fmt: skip
    model._decisions = decisions
    return model
