# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Requests that come one by one and are computed together (doc/serving.md)."""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from . import _native
from .result import Result

if TYPE_CHECKING:
    import asyncio

    from .model import Model


class Ticket:
    """A request that was submitted.  It is computed while somebody waits for it, or for others."""

    def __init__(self, raw: _native.RawTicket, model: Model) -> None:
        self._raw = raw
        self._model = model

    def result(self, timeout: float | None = None) -> Result:
        """Its results, after at most `timeout` seconds: then BusyError is raised, and it can be waited for again."""
        return Result(self._raw.result(timeout), self._model)

    def done(self) -> bool:
        """Whether it has ended."""
        return self._raw.done()

    def cancel(self) -> None:
        """Ends it; `result` raises CancelledError unless it had ended."""
        self._raw.cancel()

    @property
    def times(self) -> tuple[int, int, int]:
        """When it was submitted, joined those that are computed, and ended [ns of CLOCK_MONOTONIC]; 0 = it has not."""
        return self._raw.times


class Service:
    """A queue before a model that was loaded with continuous=True.

        service = model.service()
        tickets = [service.submit(tree) for tree in trees]     # computed together while one waits
        results = [ticket.result() for ticket in tickets]

    and in a coroutine

        out = await model.submit(tree)

    Keyword arguments are the members of esp_service_options.
    """

    def __init__(self, model: Model, **options: int) -> None:
        self._model = model
        self._raw = model._program.service(**options)

    def submit(self, batch: Any = None, /, *, priority: int = 0, deadline: float | None = None, **arrays: Any) -> Ticket:
        """Submits a structure, a minibatch, or arrays by name (as a dict, where an input is called as an option is), as one
        request; `deadline`: seconds from now.  BusyError: the service is full."""
        from .model import _joined

        return Ticket(self._raw.submit(_joined(batch, arrays), priority=priority, deadline=deadline), self._model)

    def stream(self, saved: bytes | None = None) -> Stream:
        """A sequence whose elements come later, from its beginning or from what `Stream.save` returned."""
        return Stream(self._raw.stream(saved), self._model)

    def counts(self) -> dict[str, int]:
        """How many requests were submitted, refused, done and so on; `forests`, `forest_requests` and `forest_nodes`: what was
        computed as whole requests together."""
        return self._raw.counts()

    def metrics(self) -> str:
        """Counters in the text format of Prometheus."""
        return self._raw.metrics()

    def __repr__(self) -> str:
        counts = self.counts()
        return f"<espalier.Service of {self._model!r}: {counts['pending']} pending, {counts['done']} done>"


class AsyncService:
    """A service of one event loop, which `Model.submit` makes when the loop first needs it."""

    def __init__(self, model: Model, loop: asyncio.AbstractEventLoop) -> None:
        self._raw = model._program.service()
        self._model = weakref.ref(model)
        self._futures: dict[_native.RawTicket, asyncio.Future[_native.RawResult]] = {}
        self._loop = weakref.ref(loop)
        self._descriptor = self._raw.descriptor()

    async def submit(self, batch: Any, priority: int, deadline: float | None) -> Result:
        """Its results.  The loop watches the descriptor of the service while requests are under way."""
        loop, model = self._loop(), self._model()
        assert loop is not None and model is not None
        ticket = self._raw.submit(batch, priority=priority, deadline=deadline, event=True)
        future = loop.create_future()
        if not self._futures:
            loop.add_reader(self._descriptor, self._take, loop)
        self._futures[ticket] = future
        try:
            return Result(await future, model)
        except BaseException:
            ticket.cancel()
            raise

    def _take(self, loop: asyncio.AbstractEventLoop) -> None:
        while (ticket := self._raw.next()) is not None:
            future = self._futures.pop(ticket)
            if future.done():
                continue
            try:
                future.set_result(ticket.result(0))
            except _native.Error as error:
                future.set_exception(error)
        if not self._futures:
            loop.remove_reader(self._descriptor)


class Stream:
    """A sequence whose elements come one after the other; results have the bits of one run over all of it.

        stream = service.stream()
        for elements in chunks:
            out = stream.push(elements)["y"]
    """

    def __init__(self, raw: _native.RawStream, model: Model) -> None:
        self._raw = raw
        self._model = model

    def push(self, elements: Any, timeout: float | None = None) -> Result:
        """Computes the next elements: a list, a tuple or an array of what they carry.  An output at the root is that of the
        last one."""
        return Result(self._raw.push(elements).result(timeout), self._model)

    def copy(self) -> Stream:
        """Another stream with the same past."""
        return Stream(self._raw.copy(), self._model)

    def save(self) -> bytes:
        """Its states, for `Service.stream`, also in another process."""
        return self._raw.save()
