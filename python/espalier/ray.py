# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Models on the nodes of a Ray cluster (doc/scale.md).

    shared = espalier.ray.share(model)                  # once, into Ray's shared memory, where replicas map it
    treebank.map_batches(espalier.ray.Predictor, fn_constructor_kwargs={"model": shared},
                          compute=ray.data.ActorPoolStrategy(size=2), batch_size=256)
    handle = serve.run(espalier.ray.deployment(shared, num_replicas=2))
    answer = await espalier.ray.submit(handle, tree)    # asked again if the replica dies meanwhile

All nodes run the code that was compiled once, for the `target` of `espalier.load`, so results have the bits of one machine's;
a node whose processor lacks what the target needs refuses the program.  Needs ray, or ray[data] and ray[serve].
"""
from __future__ import annotations

import logging
import mmap
import time
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import ray
from ray.exceptions import NodeDiedError, ObjectLostError, RayActorError

from . import _native
from . import model as _model
from .model import Model
from .result import Result

if TYPE_CHECKING:
    from ray.serve import Application
    from ray.serve.handle import DeploymentHandle
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Predictor", "Replica", "columns", "deployment", "open_model", "share", "submit"]

_log = logging.getLogger(__name__)
_STATUS: dict[type[Exception], int] = {_native.InputError: 400, _native.BusyError: 429, _native.ExpiredError: 504}
_REFUSALS: tuple[type[Exception], ...] = (UnicodeDecodeError, *_STATUS)
_DEATHS = (RayActorError, NodeDiedError, ObjectLostError)  # the last two: of an answer that was computed and not fetched yet


def share(model: Model) -> ray.ObjectRef[Model]:
    """Puts the compiled program with its weights into Ray's object store, once for each node that asks for it.  It is there as
    long as the process that called this: a deployment that outlives it takes the path of a saved program instead."""
    return ray.put(model)


def open_model(model: Any, **reading: Any) -> Model:
    """The model that runs in this process of Ray's: in its context, or in a new one with as many threads as Ray gave it processors.

        model       what `share` returned, the path of a saved program that each node has, or a `Model`.  Processes of one node share
                    the memory of the first two
        reading     of a path: `vocab` and what else `espalier.load` takes
    """
    if isinstance(model, Model):
        return model
    runtime: Any = ray.get_runtime_context()
    processors = runtime.get_assigned_resources().get("CPU", 1)
    _model.default_context(threads=max(1, int(processors)))
    if isinstance(model, ray.ObjectRef):
        shared: Model = ray.get(model)
        return shared
    with open(model, "rb") as file:
        return _model.load(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), **reading)


# --- results as columns ---


def _column(rows: np.ndarray, begin: list[int] | None) -> np.ndarray:
    """A row for each structure: where structures have rows of nodes, an array of these; of words a list, as Parquet has it."""
    if begin is None:
        return rows
    column = np.empty(len(begin) - 1, object)
    for i, (first, end) in enumerate(pairwise(begin)):
        column[i] = rows[first:end].tolist() if rows.dtype.kind == "U" else rows[first:end]
    return column


def columns(result: Result, outputs: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The outputs, all or those that are named, with a row for each structure; of one with labels also the label of its largest
    element, as NAME_label."""
    made = {}
    described = {each.name: each for each in result._model.outputs}
    for name in described if outputs is None else outputs:
        rows = result[name]
        output = described[name]
        begin = None if output.at_root else result.begin
        made[name] = _column(rows, begin)
        if output.labels:
            made[f"{name}_label"] = _column(np.array(output.labels)[rows.argmax(axis=-1)], begin)
    return made


# --- Ray Data ---


class Predictor:
    """For `Dataset.map_batches`: adds the outputs to each record of a treebank as columns.

    model       see `open_model`, also for `reading`
    column      what holds the structures: a text each, of brackets, CoNLL-U or JSON (doc/structures.md)
    outputs     which outputs; None = all
    """

    def __init__(self, model: Any, column: str = "structure", outputs: Iterable[str] | None = None, **reading: Any) -> None:
        self._model = open_model(model, **reading)
        self._source = column
        self._outputs = None if outputs is None else list(outputs)

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self._source not in batch:
            raise KeyError(f"there is no column '{self._source}'; there are {', '.join(batch)}")
        texts = [str(text) for text in batch[self._source]]
        result = self._model(texts)
        if len(result) != len(texts):
            self._refuse(texts)
        made = columns(result, self._outputs)
        twice = sorted(made.keys() & batch.keys())
        if twice:
            raise ValueError(f"the records have a column '{twice[0]}' already: rename it, or choose other `outputs`")
        return {**batch, **made}

    def _refuse(self, texts: list[str]) -> None:
        for text in texts:
            if (count := len(self._model([text]))) != 1:
                raise ValueError(f"a record holds one structure, this one {count}: {text[:200]!r}")


# --- Ray Serve ---


class Replica:
    """A replica of a deployment.  What is under way in it at the same time is computed together: the model must have been loaded
    with continuous=True.  Arguments: see `open_model`."""

    def __init__(self, model: Any, **reading: Any) -> None:
        self._model = open_model(model, **reading)

    async def run(self, batch: Any, priority: int = 0, deadline: float | None = None) -> dict[str, np.ndarray]:
        """For handles: the `columns` of a structure or minibatch, as `Model.__call__` takes them; see `Model.submit`."""
        return columns(await self._model.submit(batch, priority=priority, deadline=deadline))

    async def __call__(self, request: Request) -> Response:
        """For HTTP: the body is a text of structures, the answer JSON with a list for each column."""
        from starlette.responses import JSONResponse

        try:
            made = await self.run((await request.body()).decode())
        except _REFUSALS as error:
            return JSONResponse({"error": str(error)}, _STATUS.get(type(error), 400))
        return JSONResponse({name: [np.asarray(row).tolist() for row in column] for name, column in made.items()})


def deployment(model: Any, *, reading: Mapping[str, Any] | None = None, **options: Any) -> Application:
    """For `serve.run`: replicas of a model, what `share` returned or a path; `reading` as of `open_model`, `options` those of
    `ray.serve.deployment`."""
    from ray import serve

    options.setdefault("max_ongoing_requests", 256)
    made: Application = serve.deployment(**options)(Replica).bind(model, **dict(reading or {}))
    return made


async def submit(handle: DeploymentHandle[Any], batch: Any, *, priority: int = 0, deadline: float | None = None,
                 attempts: int = 3) -> dict[str, np.ndarray]:
    """What `Replica.run` returns, also if the replica dies while it computes: then the same is submitted again, and Ray chooses a
    replica that lives.  A run changes nothing and its results have the same bits everywhere, so it does not matter how far the
    first one came.  Each new attempt is logged with the level INFO.

        deadline    seconds from now, for all attempts together
        attempts    how often at most; what Ray raised at the last one goes on, such as ray.exceptions.RayActorError
    """
    end = None if deadline is None else time.monotonic() + deadline
    for attempt in range(1, attempts + 1):
        left = None if end is None else end - time.monotonic()
        try:
            answer: dict[str, np.ndarray] = await handle.run.remote(batch, priority, left)
            return answer
        except _DEATHS as error:
            if attempt == attempts:
                raise
            _log.info("attempt %d of %d failed, as its replica died: %s", attempt, attempts, str(error).partition("\n")[0])
    raise ValueError(f"submit() needs at least one attempt, not {attempts}")
