# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Random calls of all that the package offers: each returns what it must, or raises an exception of a known kind, whatever was
called before, is held still, or was wrong; and nothing is left when all objects are gone.

A sample of it is a test; `python test_random_calls.py --seed 1 --seeds 100 --calls 500` in this folder runs more.
"""
import argparse
import asyncio
import ctypes
import functools
import gc
import os
import pickle
import random
import threading
import time
import traceback

import numpy as np
import pytest
import random_structures
from random_structures import KINDS

import espalier
from espalier._arrays import pack_weights
from espalier._native import dump_stages
from espalier.builder import Value
from espalier.model import _unpickle

KNOWN = (espalier.Error, TypeError, ValueError, KeyError, IndexError, OverflowError, BufferError, OSError)
SEEDS = 6
CALLS = 150


class Broken(Exception):
    """What a caller's own code raises."""


class Loaded:
    """A model, and by generation what its weights are multiplied by."""

    def __init__(self, kind, model, scales):
        self.kind, self.model, self.scales = kind, model, scales


class Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]  # fmt: skip


def read_buffer(rows, flags):
    """The elements of a buffer as its consumer sees them who asked by these flags (PyBUF_*)."""
    view = Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(rows), ctypes.byref(view), flags)
    try:
        memory = ctypes.string_at(view.buf, view.len) if not view.strides else None
        shape = tuple(view.shape[i] for i in range(view.ndim)) if view.shape else (view.len // view.itemsize,)
        if view.strides:
            at = [sum(i * view.strides[axis] for axis, i in enumerate(index)) for index in np.ndindex(shape)]
            memory = b"".join(ctypes.string_at(view.buf + each, view.itemsize) for each in at)
            if flags & 0x20 == 0x20:
                assert np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, view.strides[: view.ndim]).flags.c_contiguous
            if flags & 0x40 == 0x40:
                assert np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, view.strides[: view.ndim]).flags.f_contiguous
        return np.frombuffer(memory, np.float32).reshape(shape)
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))


@functools.cache
def saved_program(name):
    """The bytes of a compiled program, of one kind."""
    return bytes(espalier.load(KINDS[name].text, KINDS[name].weights, context=espalier.Context(cache=False), continuous=True))


class World:
    """What lives between calls."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        np.random.seed(seed)
        self.context = self.new_context()
        self.loaded = []
        self.held = []  # (view, the bytes that it had)
        self.services = []  # (what was loaded, a service)
        self.tickets = []  # (what was loaded, ticket, parts)
        self.streams = []  # (what was loaded, stream, the elements that were pushed)
        self.saved = []  # (what was loaded, a saved program)
        self.calls = dict.fromkeys(("right", "refused"), 0)

    def new_context(self):
        return espalier.Context(threads=self.random.choice((1, 2)), cache=False)

    def pick(self, pool):
        """A random thing of a pool; KeyError when it is empty."""
        if not pool:
            raise KeyError("empty")
        return pool[self.random.randrange(len(pool))]

    def hold(self, view):
        """Keeps a view, which must stay as it is."""
        self.held.append((view, bytes(np.ascontiguousarray(view))))

    # --- checks ---

    def check(self, loaded, out, parts):
        """That a result is what it must be."""
        roots = [root for each in parts for root in each.roots]
        orders = [order for each in parts for order in each.orders]
        assert len(out) == len(roots)
        for i, (root, order) in enumerate(zip(roots, orders)):
            for name, wanted in loaded.kind.compute(root, loaded.scales[out.generation]).items():
                found = out[i][name]
                at_every_node = wanted.ndim == 2
                if order is None and at_every_node:
                    continue
                assert (found[order] if at_every_node else found).tolist() == wanted.tolist(), (name, i)
        if self.random.random() < 0.3:
            self.hold(out[self.random.choice(out.keys())])
        if self.random.random() < 0.3:
            self.view(out)

    def view(self, out):
        """Reads rows as different consumers do."""
        rows = out.rows(self.random.choice(out.keys()))
        whole = np.array(rows)
        flags = self.random.choice((0, 4, 8, 0x18, 0x38, 0x58, 0x98, 0x3C, 0x5C, 0x9C, 0x1C, 0x118, 1, 0x19, 9))
        try:
            assert read_buffer(rows, flags).ravel().tolist() == whole.ravel().tolist()
        except BufferError:
            assert flags & 1 or flags & 0x40 or not whole.flags.c_contiguous or not np.asarray(rows).flags.c_contiguous
        self.hold(np.from_dlpack(rows) if self.random.random() < 0.5 else memoryview(rows))
        out.begin, out.label, repr(out), out[0]._repr_svg_()
        assert out.state("h").dtype == np.float32 if out._model.states and not isinstance(out, espalier.Ticket) else True

    def check_held(self):
        for view, before in self.held:
            assert bytes(np.ascontiguousarray(view)) == before, "a view changed under its holder"

    # --- calls ---

    def load(self):
        name = self.random.choice(list(KINDS))
        kind = KINDS[name]
        context = self.random.choice((self.context, self.context, self.new_context()))
        weights = self.random.choice((dict, pack_weights, lambda w: bytearray(pack_weights(w))))(kind.weights)
        vocab = kind.vocab if self.random.random() < 0.7 else iter(kind.vocab) if isinstance(kind.vocab, list) else kind.vocab
        if self.random.random() < 0.4:
            saved = self.random.choice((bytes, bytearray, lambda x: np.frombuffer(x, np.uint8)))(saved_program(name))
            self.loaded.append(Loaded(kind, espalier.load(saved, vocab=vocab, context=context), {1: 1}))
            return
        model = espalier.load(kind.text, weights, vocab=vocab, context=context, backend="interpreter",
                              lazy=self.random.random() < 0.3, continuous=self.random.random() < 0.6)  # fmt: skip
        self.loaded.append(Loaded(kind, model, {1: 1}))

    def load_wrong(self):
        kind = KINDS[self.random.choice(list(KINDS))]
        weights = dict(kind.weights)
        options = {"context": self.context, "backend": "interpreter"}
        way = self.random.randrange(9)
        text = kind.text
        if way == 0:
            at = self.random.randrange(len(text))
            text = text[:at] + self.random.choice(("", "#", "h", " ", "\0", "\udcff", "((", "é")) + text[at + self.random.randrange(4) :]
        elif way == 1:
            weights[self.random.choice([*weights, "other"])] = random_structures.wrong_value(self.random, int)
        elif way == 2:
            weights = bytearray(pack_weights(weights))
            for _ in range(self.random.randrange(1, 4)):
                weights[self.random.randrange(len(weights))] = self.random.randrange(256)
            weights = weights[: self.random.randrange(len(weights))] if self.random.random() < 0.3 else weights
        elif way == 3:
            options[self.random.choice(("at", "target", "schedule", "math", "rules", "weights_as", "precision", "assume", "accelerator", "graph", "binarize", "context", "vocab",
                                        "columns", "backend"))] = random_structures.wrong_value(self.random, int)  # fmt: skip
        elif way == 4:
            text = self.random.choice((b"no program", bytearray(), memoryview(b"12345678")[::2], "/none.ra", "\udcff.ra", "/", None, 3, np.ones(3)))
        elif way == 5:
            weights = self.random.choice((None, 5, "/none", "\0", [], {"W": None}, np.ones(3), memoryview(b"x" * 64)[::2]))
        elif way == 6:
            options["vocab"] = self.random.choice((["a\nb"], ["a", "a"], "/none", 5, [None], b"abc", {"other": ["a"]}, {"word": 5}, ["\udcff"], [""]))
        elif way == 7:
            weights = {name: np.random.randint(-3, 3, np.random.randint(0, 4, np.random.randint(0, 4))).astype("f4") for name in weights}
        else:
            options[self.random.choice(("threads", "memory_cap", "machine", "cache_dir"))] = random_structures.wrong_value(self.random, int)
            espalier.Context(**{name: value for name, value in options.items() if name not in ("context", "backend")})
            return
        espalier.load(text, weights, **options)

    def run(self):
        loaded = self.pick(self.loaded)
        given, parts = random_structures.batch(loaded.kind, self.random)
        try:
            out = loaded.model(given)
        except espalier.ClosedError:
            return
        except KNOWN as error:
            raise AssertionError(f"refused, though nothing is wrong: {given}") from error
        self.check(loaded, out, parts)

    def run_wrong(self):
        """A minibatch with a fault, which may show or not."""
        loaded = self.pick(self.loaded)
        parts = [random_structures.part(loaded.kind, self.random).given for _ in range(self.random.randrange(1, 4))]
        at = self.random.randrange(len(parts))
        parts[at] = random_structures.spoil_nested(self.random, parts[at], self.act)
        out = loaded.model(self.random.choice((list, iter, lambda x: x[at]))(parts))
        for name in out.keys():
            out[name]
        self.hold(out[self.random.choice(out.keys())])

    def act(self):
        """What a hostile object does when it is looked at."""
        way = self.random.randrange(6)
        if way == 0:
            gc.collect()
        elif way == 1:
            raise Broken
        elif way == 2:
            self.run()
        elif way == 3 and self.random.random() < 0.1:
            self.pick(self.loaded).model._program.context.close()
        elif way == 4:
            self.held.clear()
        return self.random.randrange(3)

    def fail_in_the_middle(self):
        loaded = self.pick(self.loaded)

        def broken():
            yield random_structures.nested(loaded.kind, self.random, loaded.kind.grow(self.random))
            yield from (random_structures.part(loaded.kind, self.random).given for _ in range(self.random.randrange(3)))
            raise Broken

        try:
            loaded.model(broken())
        except Broken:
            return self.run()
        raise AssertionError("the caller's exception is lost")

    def use_results(self):
        loaded = self.pick(self.loaded)
        out = loaded.model([random_structures.nested(loaded.kind, self.random, loaded.kind.grow(self.random))])
        key = self.random.choice((0, -1, 5, -7, 2**70, "y", "none", None, 1.0, slice(1), [], np.int64(0), True))
        way = self.random.choice((lambda: out[key], lambda: out.state(key), lambda: out.root(key), lambda: out.label(key), lambda: out.rows(key),
                                  lambda: out[0].texts(key), lambda: out[0][key], lambda: out[0].svg(key), lambda: out._raw.rows(key, 0, -1),
                                  lambda: out._raw.rows(0, key, 0), lambda: out._raw.rows(0, 0, key), lambda: out._raw.nodes(key),
                                  lambda: out._raw.children(key), lambda: out._raw.root(key), lambda: out[0].svg(texts=[key])))  # fmt: skip
        way()

    def drop(self):
        for pool in (self.loaded, self.held, self.held, self.held, self.services, self.tickets, self.streams, self.saved):
            if pool and self.random.random() < 0.3:
                pool.pop(self.random.randrange(len(pool)))
        if self.random.random() < 0.2:
            gc.collect()

    def swap(self):
        loaded = self.pick(self.loaded)
        scale = self.random.randrange(1, 5)
        weights = loaded.kind.scaled(scale)
        if self.random.random() < 0.3:
            weights[self.random.choice(list(weights))] = self.random.choice((np.ones((3, 3), np.float32), None, np.ones(2, np.complex64)))
            loaded.scales[loaded.model.generation + 1] = None
        loaded.model.swap(weights)
        loaded.scales[loaded.model.generation] = scale

    def pickle(self):
        loaded = self.pick(self.loaded)
        loaded.model(random_structures.part(loaded.kind, self.random).given)
        scale = loaded.scales[loaded.model.generation]
        buffers, protocol = [], self.random.randrange(2, 6)
        callback = buffers.append if protocol == 5 and self.random.random() < 0.5 else None
        made = pickle.dumps(loaded.model, protocol, buffer_callback=callback)
        again = Loaded(loaded.kind, pickle.loads(made, buffers=buffers), {1: scale})
        given, parts = random_structures.batch(again.kind, self.random)
        self.check(again, again.model(given), parts)
        self.saved.append((loaded, bytes(loaded.model)))

    def load_mutated(self):
        loaded, saved = self.pick(self.saved)
        saved = bytearray(saved)
        if self.random.random() < 0.3:
            del saved[self.random.randrange(len(saved)) :]
        else:
            at = self.random.randrange(len(saved))
            saved[at] = (saved[at] + self.random.randrange(1, 256)) % 256
        reading = self.random.choice((({}, 0, 0, 0, 0), ({}, 9, 0, 0, 0), ({"word": 5}, 0, 0, 0, 0), (1, 2)))
        saved = self.random.choice((bytes, bytearray, np.array, lambda x: np.frombuffer(x, np.uint8)))(saved)
        pickled = pickle.dumps((_unpickle, saved, loaded.kind.vocab, reading))
        if self.random.random() < 0.2:
            try:
                pickle.loads(pickled[: self.random.randrange(len(pickled))])
            except (pickle.UnpicklingError, EOFError):
                pass
        unpickle, *rest = pickle.loads(pickled)
        unpickle(*rest)
        if self.random.random() < 0.1:
            espalier.load(saved, random_structures.wrong_value(self.random, int))

    def profile(self):
        loaded = self.pick(self.loaded)
        profile = loaded.model.profile(random_structures.part(loaded.kind, self.random).given)
        str(profile), profile._repr_svg_()
        loaded.model.explain(), loaded.model.dump(self.random.choice(dump_stages() + ["none", "\udcff"])), repr(loaded.model)

    # --- threads ---

    def threads(self):
        """Several threads run models; meanwhile another swaps weights, drops results, or closes the context."""
        loaded = [self.pick(self.loaded) for _ in range(3)]
        work = [(each, *random_structures.batch(each.kind, self.random)) for each in loaded for _ in range(3)]
        failed, meanwhile = [], self.random.randrange(4)
        target = self.pick(self.loaded)
        for scale in (2, 3):
            target.scales.setdefault(target.model.generation + scale - 1, scale)

        def runs(items):
            try:
                for each, given, parts in items:
                    out = each.model(given if isinstance(given, (list, tuple, str, dict)) else parts[0].given)
                    if isinstance(given, list):
                        self.check(each, out, parts)
            except KNOWN:
                pass
            except BaseException as error:
                failed.append(error)

        def disturbs():
            try:
                if meanwhile == 0:
                    for scale in (2, 3):
                        target.model.swap(target.kind.scaled(scale))
                elif meanwhile == 1 and self.random.random() < 0.2:
                    target.model._program.context.close()
                else:
                    gc.collect()
            except KNOWN:
                pass

        running = [threading.Thread(target=runs, args=(work[i::3],)) for i in range(3)] + [threading.Thread(target=disturbs)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        if failed:
            raise failed[0]

    def change_arrays(self):
        """Another thread writes into the arrays while they are read: right or wrong results, or an exception."""
        model = self.pick([each for each in self.loaded if each.kind.structure in ("binary", "tree")]).model
        n = 3000
        child_begin, children = np.arange(n + 1, dtype=np.int32) // 2 * 2, np.zeros(n + 1, np.int32)
        word, rel = np.zeros(n, np.int32), np.zeros(n + 1, np.int32)
        stop = threading.Event()

        def write():
            wild = np.array([0, 2**31 - 1, -5, n * 7], np.int32)
            while not stop.is_set():
                for array in (child_begin, children, word, rel):
                    array[:] = np.random.choice(wild, len(array))
                    array[:] = 0

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(20):
                try:
                    model(espalier.Structures(child_begin, children, word=word, rel=rel))
                except KNOWN:
                    pass
        finally:
            stop.set()
            writer.join()

    def close(self):
        loaded = self.pick(self.loaded)
        loaded.model._program.context.close()
        if loaded.model._program.context is self.context:
            self.context = self.new_context()
        repr(loaded.model), loaded.model.inputs, loaded.model.sizes, loaded.model.generation
        try:
            loaded.model(random_structures.part(loaded.kind, self.random).given)
        except espalier.ClosedError:
            self.loaded.remove(loaded)
            return
        raise AssertionError("a closed context runs")

    def fork(self):
        loaded = self.pick(self.loaded)
        given = random_structures.part(loaded.kind, self.random).given
        child = os.fork()
        if not child:
            status = 1
            try:
                loaded.model(given)
            except (espalier.ForkedError, espalier.ClosedError):
                self.held.clear()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    # --- services ---

    def serve(self):
        loaded = self.pick(self.loaded)
        name = self.random.choice(("rows", "step_rows", "requests", "bytes", "company", "head_start", "step_pairs", "none"))
        much = 10**7 if name in ("company", "head_start") else 2**40  # nanoseconds that requests wait
        options = {name: self.random.choice((0, 1, 7, 100, -1, much, 2**70, None, "x"))} if self.random.random() < 0.4 else {}
        self.services.append((loaded, loaded.model.service(**options)))

    def submit(self):
        loaded, service = self.pick(self.services)
        given, parts = random_structures.batch(loaded.kind, self.random)
        options = {}
        if self.random.random() < 0.3:
            options["deadline"] = self.random.choice((-1, 0, 1e-9, 10, 1e300, float("inf"), float("nan"), -1e300, None, "x"))
        if self.random.random() < 0.2:
            options["priority"] = self.random.choice((-5, 5, 2**31 - 1, 2**40, None))
        self.tickets.append((loaded, service.submit(given, **options), parts))

    def submit_wrong(self):
        loaded, service = self.pick(self.services)
        given = random_structures.spoil_nested(self.random, random_structures.part(loaded.kind, self.random).given, self.act)
        service.submit(given).result(self.random.choice((None, 1, 0)))

    def take(self):
        loaded, ticket, parts = self.pick(self.tickets)
        way = self.random.random()
        if way < 0.15:
            ticket.cancel()
        if way < 0.3:
            ticket.result(self.random.choice((0, 1e-9, -1, float("nan"), float("inf"), 1e300, "x")))
        ticket.done(), ticket.times
        self.check(loaded, ticket.result(), parts)

    def wait_in_threads(self):
        waiting = [threading.Thread(target=self.quietly, args=(self.take,)) for _ in range(3)]
        waiting.append(threading.Thread(target=self.quietly, args=(self.drop,)))
        for thread in waiting:
            thread.start()
        for thread in waiting:
            thread.join()

    def quietly(self, call):
        try:
            call()
        except KNOWN:
            pass

    def stream(self):
        loaded, service = self.pick(self.services)
        self.streams.append((loaded, service.stream(), []))

    def push(self):
        loaded, stream, past = self.pick(self.streams)
        elements = [loaded.kind.grow(self.random).x for _ in range(self.random.randrange(1, 5))]
        if self.random.random() < 0.3:
            stream.push(random_structures.wrong_value(self.random, self.act))
            self.streams.remove((loaded, stream, past))  # what was pushed may have been right
            return
        out = stream.push(random_structures.vector(self.random, np.stack(elements)))
        past += elements
        scale = {loaded.scales[generation] for generation in loaded.scales}
        wanted = np.cumsum(np.stack(past) @ loaded.kind.weights["W"].T, axis=0)[-len(elements) :]
        if len(scale) == 1:
            assert out["each"].tolist() == (wanted * scale.pop()).tolist()

    def copy_stream(self):
        loaded, stream, past = self.pick(self.streams)
        if self.random.random() < 0.5:
            self.streams.append((loaded, stream.copy(), list(past)))
            return
        saved = bytearray(stream.save())
        _, service = self.pick([each for each in self.services if each[0] is loaded])
        if self.random.random() < 0.5:
            self.streams.append((loaded, service.stream(bytes(saved)), list(past)))
            return
        saved[self.random.randrange(len(saved))] ^= 1 << self.random.randrange(8)
        service.stream(saved[: self.random.randrange(len(saved) + 1)]).push(np.ones((1, 2), np.float32))

    def gather(self):
        """Coroutines that wait together, some of which are cancelled, or whose loop ends before them."""
        loaded = self.pick(self.loaded)
        work = [random_structures.batch(loaded.kind, self.random) for _ in range(5)]
        way = self.random.randrange(4)

        async def one(given, parts):
            self.check(loaded, await loaded.model.submit(given), parts)

        async def all_of_them():
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # of tasks that nobody waits for
            tasks = [asyncio.ensure_future(one(*each)) for each in work]
            await asyncio.sleep(0)
            if way == 0:
                tasks[0].cancel()
            if way == 1:
                return
            for done in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(done, BaseException) and not isinstance(done, asyncio.CancelledError):
                    raise done

        asyncio.run(all_of_them())

    # --- builders ---

    def build(self):
        b = espalier.Builder("m", self.random.choice(("tree(left, right)", "sequence", "dag(*)", "none", "tree(", "\udcff", "")), self.context)
        values = [b.input("x", "D"), b.param("W", "D, D"), b.token("word")]
        names = ("h", "x", "D", "none", "", "é", "W[", "\0", "D, D", "2", "-1", "999999999999")
        for _ in range(self.random.randrange(30)):
            v, w, name = self.pick(values), self.pick(values), self.random.choice(names)
            calls = (lambda: v + w, lambda: v @ w, lambda: -v, lambda: v * 2, lambda: v[w], lambda: v[0:2], lambda: v[-1:], lambda: v[name:],
                     lambda: v[::2], lambda: b.call(name, v, w), lambda: b.sigmoid(v), lambda: b.softmax(v, axis=self.random.randrange(-3, 4)),
                     lambda: b.body(self.random.choice(("leaf", "inner", "node", "output", "root", "below", "none", -3, 99, 2**40))),
                     lambda: b.state(name, name), lambda: b.edge("e", name), lambda: b.edge_token(name), lambda: b.assign(name, v), lambda: b.get(name),
                     lambda: b.output(name, v, self.random.choice(("root", "all", "no"))), lambda: b.children(lambda k: k[name]), lambda: b.child(9).h,
                     lambda: b.case(name, self.random.choice(("leaf", "inner", "node")), name), lambda: b.traversal(name), lambda: b.parent().h,
                     lambda: b.members(lambda n: n.h), lambda: b.indexed(name, v), lambda: b.indexed("(v)[i] = v[i]", v), lambda: b.zeros(name),
                     lambda: b.dimension(name), lambda: b.concat(*[v] * self.random.choice((1, 64, 65))), lambda: list(v), lambda: v in w,
                     lambda: b.call("+", Value(b, self.random.choice((0, 7, 2**31, 2**40, -1)))), lambda: b.finish())  # fmt: skip
            try:
                made = self.random.choice(calls)()
                if isinstance(made, Value):
                    values.append(made)
            except KNOWN:
                self.calls["refused"] += 1
        espalier.load(b, {"W": np.ones((2, 2), np.float32)}, context=self.context, backend="interpreter")

    def step(self):
        """One call."""
        often = (self.run, self.run, self.run_wrong, self.run_wrong, self.submit, self.take, self.drop, self.push)
        seldom = (self.load, self.load_wrong, self.fail_in_the_middle, self.use_results, self.swap, self.pickle, self.load_mutated, self.profile,
                  self.threads, self.serve, self.serve, self.submit_wrong, self.wait_in_threads, self.stream, self.copy_stream, self.gather, self.build)  # fmt: skip
        rarely = (self.close, self.fork, self.change_arrays)
        call = self.random.choice(self.random.choices((often, seldom, rarely), (10, 10, 1))[0])
        if not self.loaded:
            call = self.load
        try:
            call()
            self.calls["right"] += 1
        except (*KNOWN, Broken) as error:
            assert str(error) or isinstance(error, Broken), f"{type(error)} says nothing"
            self.calls["refused"] += 1

    def end(self):
        """Everything goes, and with it the memory of the context."""
        self.check_held()
        for pool in (self.loaded, self.held, self.services, self.tickets, self.streams, self.saved):
            self.random.shuffle(pool)
            pool.clear()
        gc.collect()
        return self.context.memory


def play(seed, calls):
    """Runs random calls; returns how many were right and how many were refused."""
    world = World(seed)
    empty = espalier.Context(threads=world.context.threads, cache=False).memory
    for number in range(calls):
        try:
            world.step()
            if number % 10 == 0:
                world.check_held()
        except BaseException as error:
            error.add_note(f"seed {seed}, call {number}")
            raise
    left, limit = world.end(), time.monotonic() + 10
    while left > empty and time.monotonic() < limit:  # what a thread of the library is about to give back
        left = world.context.memory
    assert left <= empty, f"seed {seed}: {left - empty} bytes are left"
    return world.calls


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_calls(seed):
    calls = play(seed, CALLS)
    assert calls["right"] > CALLS / 4 and calls["refused"] > CALLS / 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.seeds):
        print(f"seed {seed}: {play(seed, options.calls)}", flush=True)


if __name__ == "__main__":
    main()
