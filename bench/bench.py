#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The complete benchmark: times models and compares them with the machine's limits and with peers (make bench).

  bench.py [--parts LIST] [--cases LIST] [--hidden 256,512] [--batches 1,10] [--threads 1,2] [--rounds 2]
  bench.py --from DIR[,DIR...]     the tables and plots of runs that were recorded there, of one machine after the other

Each part prints a table and appends its measurements to DIR/results.jsonl, one JSON object per line:

  floor       every case of cases.tsv: floor / time; two threads against one; the linearizer's share
  linearizer  the share of linearizing in a run of every case, and what filling buffers takes
  summary     the table of the README: TreeLSTMs and an LSTM at hidden 256 against all peers, in one round
  torch       tree models against PyTorch per node, by levels, by levels with TorchScript and with torch.compile, against
              ONNX Runtime where it applies, and DyNet where it is built
  rnn         LSTM and GRU against PyTorch, ONNX Runtime and oneDNN
  precisions  trees, DAGs, sequences in each of --precisions, against DyNet, ONNX Runtime and oneDNN in f32, int8 and bf16
  models      the cases with the peers graphs and layers against PyTorch
  memory      peak resident memory of the models with the peers torch and rnn beside PyTorch and DyNet
  cortex      the figures of cortex.tsv, from another machine, against those of the part floor
  backends    every case with each back end, one thread: the time of a run, and of compiling the program
  hand        a TreeLSTM against kernels written by hand (hand/treelstm)
  start       processes from start to end, without and with their program in the cache
  batches     time by the size of the minibatch, 1 to 256
  nodes       time by the number of nodes, 10^2 to 10^7
  load        random arrivals at a window batcher before Espalier's runs, PyTorch and DyNet (window.py): latencies by load

Contestants are processes that answer alternately, minibatch by minibatch and in reverse order every second time, so that a
slow moment of the machine affects all of them; all cases are repeated in each round. Outputs are compared first. The figures
are the least time and the median of each minibatch's runs, and their means over minibatches. The part floor also reports the
undisturbed time: the sum of the least times of a minibatch's levels. The machine is measured before and after each case, and
the best limits count. While one contestant runs, all others are stopped (SIGSTOP). The threads of a peer wait actively in one
contestant and passively in another; the fastest of these and of one thread counts, and so does the fastest of Espalier with
one and two threads. Peers that are not installed are left out with a note.
"""
import argparse
import atexit
import functools
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import plots
import tables
import window

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
PEERS = os.path.join(HERE, "peers")
SKIPPED = 77  # exit status of a program for other machines
PARTS = ("floor", "linearizer", "summary", "torch", "rnn", "precisions", "models", "memory", "cortex", "backends", "hand",
         "start", "batches", "nodes", "load")
WAITS = ("active", "passive")  # OMP_WAIT_POLICY
SUMMARY = ("treelstm", "childsum", "lstm")  # cases
PRECISE = ("treelstm", "childsum", "treegru", "simpletreegru", "treernn", "mvrnn", "dagrnn", "lstm bounded", "gru bounded")
WINDOWS = (0, 0.001, 0.005)  # of the part load [s]
TOLERANCE = 1e-3  # of outputs, with weights that keep them near 1; f32 against f32 in another order
# The largest mean difference from f32 of contestants in other types: deep graphs with random weights make large errors of small ones.
ROUGH = 0.1
EXACT = ("f32", "dynet", "onnx", "dnnl")  # last words of the kinds of contestants in f32, in the part precisions


class Bench:
    """The options, and where results go."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.command = os.path.join(options.build, "espalier")
        self.libraries = os.path.join(options.build, ".libs")
        self.serve = self.find_program("serve")
        self.realtime = ["chrt", "-f", "50"] if options.realtime else []
        os.environ.setdefault("ESPALIER_BACKEND_PATH", self.libraries)
        before = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = self.libraries + (os.pathsep + before if before else "")
        self.machines = {}  # threads -> the best limits found in this run
        self.samples = {}  # (part, case, hidden, batch, contestant) -> of each minibatch: times of all rounds, least undisturbed
        self.last_round = True

    def find_program(self, name):
        """bench/NAME may be a script of libtool, which starts processes of its own; one that it has just started can miss that all
        are stopped or continued. So what it runs is run directly."""
        script = os.path.join(self.options.build, "bench", name)
        program = os.path.join(self.options.build, "bench", ".libs", name)
        return program if os.path.exists(program) else script

    def measure_machine(self, contestant):
        """Measures the machine; later floors use the best limits so far."""
        found = json.loads(contestant.ask("machine"))
        self.record("machine", **found)
        best = self.machines[contestant.threads] = tables.best_machine(self.machines.get(contestant.threads, found), found)
        contestant.tell(f"limits {best['gflops']} {best['barrier_us']} " + " ".join(str(point["gbs"]) for point in best["read"]))

    def record(self, part, **values):
        with open(os.path.join(self.options.output, "results.jsonl"), "a") as file:
            file.write(json.dumps({"part": part, **values}) + "\n")

    def note(self, text):
        print(f"# {text}", file=sys.stderr, flush=True)
        self.record("note", text=text)


def read_table(path):
    """Rows of a file of tab-separated values; comments begin with #."""
    with open(path) as file:
        return [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]


class Case:
    def __init__(self, row, hidden):
        self.name, self.model, structures, sizes, self.peer, self.cortex, own = row[:7]
        self.structures, _, self.length = structures.partition(" ")
        self.hidden = hidden
        self.own = own
        self.sizes = re.sub(r"\bH\b", str(hidden), sizes)


def cases_of(options, bounded=False):
    """Those with the peer `bounded`, whose models are in f32 as others, only if they are asked for."""
    for row in read_table(os.path.join(HERE, "cases.tsv")):
        sizes = options.hidden if row[6] == "-" else row[6]
        for hidden in sizes.split(","):
            case = Case(row, int(hidden))
            named = options.cases and case.name in options.cases.split(",")
            if named or (not options.cases and (bounded or case.peer != "bounded")):
                yield case


MODEL_PEERS = ("graphs", "layers")  # of the part models
MEMORY_PEERS = ("torch", "rnn")  # of the part memory
# What a part needs of a case; other parts have no cases, or run all.
WANTED = {"torch": ("has the peer torch", lambda case: case.peer == "torch"),
          "rnn": ("has the peer rnn", lambda case: case.peer == "rnn"),
          "precisions": ("is " + ", ".join(PRECISE), lambda case: case.name in PRECISE),
          "models": ("has the peer graphs or layers", lambda case: case.peer in MODEL_PEERS),
          "load": ("has the peer torch", lambda case: case.peer == "torch"),
          "memory": ("has the peer torch or rnn", lambda case: case.peer in MEMORY_PEERS),
          "cortex": ("has a name in cortex.tsv", lambda case: case.cortex != "-")}


def missing_of(parts, options):
    """A message about parts that would measure nothing; None = each has something to measure."""
    unknown = set((options.cases or "").split(",")) - {row[0] for row in read_table(os.path.join(HERE, "cases.tsv"))} - {""}
    if unknown:
        return f"no case of cases.tsv is {', '.join(sorted(unknown))}"
    for part, (what, wants) in WANTED.items():
        if part in parts and not any(map(wants, cases_of(options, bounded=True))):
            return f"{part}: none of {', '.join(options.cases.split(','))} {what} (cases.tsv)"
    if "cortex" in parts and "floor" not in parts:
        return "cortex: its figures stand beside those of the part floor: --parts floor,cortex"
    return None


# --- contestants ---

class Contestant:
    """A process that answers requests. It is stopped between requests, so that its actively waiting threads do not disturb
    others. kind: espalier or the name of a peer; with "espalier inputs" Espalier computes input projections, too. waits: how
    the threads of a peer wait for each other, None with one thread."""

    def __init__(self, bench, kind, threads, command, waits=None):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        if waits:
            environment["OMP_WAIT_POLICY"] = waits.upper()
        self.log = tempfile.TemporaryFile("w+")
        self.kind, self.threads, self.waits = kind, threads, waits
        self.levels = False  # also ask for its undisturbed time
        self.name = f"{kind} x{threads}" + (f" {waits}" if waits else "")
        self.process = subprocess.Popen(bench.realtime + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, bufsize=1, env=environment, preexec_fn=os.setpgrp)
        atexit.register(self.process.kill)  # it may be stopped
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        """Sends a signal to the process and its children."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass  # it has ended; reading its answer will fail

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def ask(self, line):
        self.signal(signal.SIGCONT)
        self.tell(line)
        answer = self.process.stdout.readline()
        self.signal(signal.SIGSTOP)
        return answer

    def times(self, first, count, repeats):
        """Microseconds of each run of a minibatch, linearizing included."""
        answer = self.ask(f"run {first} {count} {repeats}")
        try:
            times = [float(word) for word in answer.split()]
        except ValueError:
            times = []
        if len(times) != repeats:
            sys.exit(f"{self.name}: {repeats} times are wanted, not {answer.strip()[:200] or 'the end of the output'!r}")
        return times

    def serve(self, first, count):
        """Runs a minibatch once. The process must have been continued."""
        self.tell(f"run {first} {count} 0")
        if self.process.stdout.readline().strip():
            sys.exit(f"{self.name}: no time is wanted of run {first} {count} 0")

    def close(self):
        self.process.stdin.close()
        self.signal(signal.SIGCONT)
        self.process.wait()
        atexit.unregister(self.process.kill)

    def root(self, first, count):
        return self.numbers(f"root {first} {count}")

    def numbers(self, line):
        return [float(word) for word in self.ask(line).split()]

    def versions(self):
        """The first line of its standard error, where peers print their versions; lines in brackets are DyNet's own."""
        self.log.seek(0)
        return next((line.strip() for line in self.log if not line.startswith("[")), "")


def arguments_of(bench, case, *more):
    """Arguments of `espalier bench` and `serve` for a case."""
    command = [os.path.join(TOP, case.model), "--sizes", case.sizes]
    if case.structures == "tree" and os.path.exists(bench.options.trees):
        command.append(bench.options.trees)
    elif case.structures in ("perfect", "grid"):
        command += ["--structures", case.structures, *(["--length", case.length] if case.length else [])]
    return command + ["--minibatches", str(bench.options.minibatches), "--batches", bench.options.batches, *more]


def ours(bench, case, kind, threads, *more):
    return Contestant(bench, kind, threads, [bench.serve, *arguments_of(bench, case, "--threads", str(threads), *more)])


def threads_of(bench):
    return [int(threads) for threads in bench.options.threads.split(",")]


# --- peers ---

@functools.cache
def version_of(python, module):
    """Version of a module; None where the interpreter or the module is missing."""
    if not shutil.which(python):
        return None
    done = subprocess.run([python, "-c", f"import {module}; print({module}.__version__)"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def pythons_with(bench, *modules):
    """Version of the first module -> the first interpreter that has it and the other modules."""
    found = {}
    for python in bench.options.pythons.split(","):
        versions = [version_of(python, module) for module in modules]
        if all(versions):
            found.setdefault(re.match(r"\d+\.\d+", versions[0])[0], python)
    return found


def python_with(bench, *modules):
    return next(iter(pythons_with(bench, *modules).values()), None)


def peer(bench, kind, command, driver_threads=True):
    """Contestants for every number of threads and wait policy. A driver gets --threads unless it reads OMP_NUM_THREADS."""
    return [Contestant(bench, kind, threads, command + (["--threads", str(threads)] if driver_threads else []), waits)
            for threads in threads_of(bench) for waits in (WAITS if threads > 1 else (None,))]


def write_raw(bench, folder):
    """Writes the data of drivers that are not in Python; None without numpy."""
    python, raw = python_with(bench, "numpy"), os.path.join(folder, "raw")
    if not python:
        return bench.note("no numpy: package python3-numpy")
    subprocess.run([python, os.path.join(PEERS, "common.py"), folder, raw], check=True)
    return raw


def driver_of(bench, name):
    path = os.path.join(bench.options.build, "bench", "peers", name)
    return path if os.access(path, os.X_OK) else None


def torch_of(bench):
    found = pythons_with(bench, "torch", "numpy")
    for release, install in (("1", "packages python3-torch, python3-numpy"), ("2", "bench/README.md")):
        if not any(version.startswith(release + ".") for version in found):
            bench.note(f"no PyTorch {release}: {install}")
    return found


def onnx_peers(bench, *driver, kind="onnx"):
    python = python_with(bench, "onnxruntime", "onnx", "numpy")
    if not python:
        return bench.note("no ONNX Runtime: Python packages onnxruntime, onnx, numpy") or []
    return peer(bench, kind, [python, os.path.join(PEERS, driver[0]), *driver[1:]])


def dynet_peers(bench, case, folder, *pool):
    """pool: mebibytes of its pools at first."""
    dynet = driver_of(bench, "dynet_trees")
    if not dynet:
        return bench.note("no DyNet: build it, then make dynet-peer DYNET=...") or []
    raw = write_raw(bench, folder)
    return [Contestant(bench, "dynet", 1, [dynet, case.name, raw, *pool])] if raw else []


def tree_peers(bench, case, folder):
    found = []
    for version, python in torch_of(bench).items():
        command = [python, os.path.join(PEERS, "torch_trees.py"), case.name, folder, "--variant"]
        found.append(Contestant(bench, f"torch {version} node", 1, command + ["node"]))
        for variant in ("level", "script" if version < "2" else "compile"):  # TorchScript's successor
            found += peer(bench, f"torch {version} {variant}", command + [variant])
    if case.name == "treelstm":  # its graphs are unrolled by hand
        found += onnx_peers(bench, "onnx_trees.py", case.name, folder)
    return found + dynet_peers(bench, case, folder)


def dnnl_peers(bench, folder, *types):
    dnnl = driver_of(bench, "dnnl_rnn")
    if not dnnl:
        return bench.note("no oneDNN: package libdnnl-dev, then configure and make bench-programs again") or []
    raw, found = write_raw(bench, folder), []
    for t in types if raw else ():
        found += peer(bench, f"dnnl {t}".removesuffix(" f32"), [dnnl, raw, t], driver_threads=False)
    return found


def rnn_peers(bench, case, folder):
    found = []
    for version, python in torch_of(bench).items():
        found += peer(bench, f"torch {version}", [python, os.path.join(PEERS, "torch_rnn.py"), folder])
    return found + onnx_peers(bench, "onnx_rnn.py", folder) + dnnl_peers(bench, folder, "f32")


def able(bench, contestants):
    """Those that answer: a library may lack a type on this processor, or for a model."""
    found = []
    for c in contestants:
        if c.root(0, 1):
            found.append(c)
        else:
            bench.note(f"{c.name} refuses")
            c.close()
    return found


def narrow_peers(bench, case, folder):
    """Of sequences, in f32 and in whatever else a library has for them."""
    found = onnx_peers(bench, "onnx_rnn.py", folder) + dnnl_peers(bench, folder, "f32", "bf16")
    if case.name.startswith("lstm"):
        found += onnx_peers(bench, "onnx_rnn.py", folder, "--int8", kind="onnx int8") + dnnl_peers(bench, folder, "int8")
    return able(bench, found)


def graph_peers(bench, case, folder):
    found = []
    for version, python in torch_of(bench).items():
        command = [python, os.path.join(PEERS, "torch_graphs.py"), case.name, folder, "--variant"]
        found.append(Contestant(bench, f"torch {version} node", 1, command + ["node"]))
        for variant in ("level",) if version < "2" else ("level", "compile"):
            found += peer(bench, f"torch {version} {variant}", command + [variant])
    return found


def layer_peers(bench, case, folder):
    command = [os.path.join(PEERS, "torch_layers.py"), case.name, folder]
    return [c for version, python in torch_of(bench).items() for c in peer(bench, f"torch {version}", [python, *command])]


PEERS_OF = {"torch": tree_peers, "rnn": rnn_peers, "graphs": graph_peers, "layers": layer_peers}
PRECISE_PEERS = {"torch": dynet_peers, "bounded": narrow_peers}


def peers_of(part, case):
    """A function that makes them from a folder with weights and structures; None = there are none."""
    return {"floor": {}, "precisions": PRECISE_PEERS}.get(part, PEERS_OF).get(case.peer)


# --- measuring ---

def check_outputs(contestants, request="root", of=max, tolerance=TOLERANCE):
    """Ends the run unless all contestants compute the same outputs, by the largest difference or what else is made of them."""
    wanted = contestants[0].numbers(f"{request} 1 2")
    for other in contestants[1:]:
        found = other.numbers(f"{request} 1 2")
        difference = of([abs(a - b) for a, b in zip(wanted, found)] or [1])
        if len(found) != len(wanted) or not difference <= tolerance:
            sys.exit(f"{other.name} gives other outputs than {contestants[0].name}: {difference}, {len(found)} of {len(wanted)}")


def is_exact(contestant):
    return contestant.kind.split()[-1] in EXACT


class Samples:
    """Microseconds of one contestant for one minibatch."""

    def __init__(self):
        self.times, self.undisturbed = [], math.inf

    def least(self):
        return min(self.times + [self.undisturbed])


def ask_alternately(bench, contestants, first, batch, samples):
    """Adds to the samples of each contestant, reversing their order every time."""
    options = bench.options
    for turn in range(options.turns):
        for c in contestants[::-1 if turn % 2 else 1]:
            samples[c.name].times += c.times(first, batch, options.repeats)
            if c.levels:
                undisturbed = float(c.ask(f"quiet {first} {batch} {options.repeats}"))
                samples[c.name].undisturbed = min(samples[c.name].undisturbed, undisturbed)


def record_samples(bench, part, case, batch, c, minibatches, limits):
    values = {"min_ms": min, "median_ms": statistics.median}
    means = {name: statistics.fmean(of(m.times) for m in minibatches) / 1000 for name, of in values.items()}
    if c.levels:
        means["quiet_ms"] = statistics.fmean(m.least() for m in minibatches) / 1000
    bench.record(part, case=case.name, hidden=case.hidden, batch=batch, kind=c.kind, threads=c.threads, waits=c.waits, **means,
                 minima=[min(m.times) / 1000 for m in minibatches], **limits)


def measure(bench, part, case, contestants):
    """Measures all batch sizes; records them in the last round."""
    options = bench.options
    request = "outputs" if case.peer in MODEL_PEERS else "root"
    rough = [c for c in contestants[1:] if not is_exact(c) or not is_exact(contestants[0])] if part == "precisions" else []
    check_outputs([c for c in contestants if c not in rough], request)
    if rough:
        check_outputs(contestants[:1] + rough, request, statistics.fmean, ROUGH)
    mine = [c for c in contestants if c.kind == "espalier" and part != "summary"]  # those with a floor
    for c in mine:
        c.levels = part == "floor"
        for _ in range(1 if c.threads in bench.machines else 6):  # more often the first time
            bench.measure_machine(c)
    for batch in map(int, options.batches.split(",")):
        firsts = [i * batch for i in range(options.minibatches)]
        samples = {c.name: bench.samples.setdefault((part, case.name, case.hidden, batch, c.name), [Samples() for _ in firsts])
                   for c in contestants}
        for i, first in enumerate(firsts):
            ask_alternately(bench, contestants, first, batch, {name: minibatches[i] for name, minibatches in samples.items()})
        for c in mine:
            bench.measure_machine(c)
        for c in contestants if bench.last_round else ():
            record_samples(bench, part, case, batch, c, samples[c.name], limits_of(c, firsts, batch) if c in mine else {})


def limits_of(contestant, firsts, batch):
    """The floor and what it is computed from, means over the minibatches."""
    rows = [[float(word) for word in contestant.ask(f"floor {first} {batch}").split()] for first in firsts]
    floor, operations, nodes, linearize = (statistics.fmean(column) for column in zip(*rows))
    return {"floor_ms": floor / 1000, "operations": operations, "nodes": nodes, "linearize_ms": linearize / 1000}


def kinds_of(bench, part, case):
    """(kind, options) of each of our contestants in a part."""
    if part == "precisions":
        rules = [f"--rules={bench.options.rules}"] if bench.options.rules else []
        return [(f"espalier {precision}", ("--precision", precision, *rules)) for precision in bench.options.precisions.split(",")]
    tables = part != "floor" and case.peer in ("torch", *MODEL_PEERS)
    return [("espalier", ()), *([("espalier inputs", ("--rules=-tables",))] if tables else [])]


def our_contestants(bench, part, case, folder):
    """The first has written weights and structures to the folder."""
    found = []
    for kind, more in kinds_of(bench, part, case):
        for threads in threads_of(bench):
            found.append(ours(bench, case, kind, threads, *more, *(() if found else ("--keep", folder))))
            if len(found) == 1:
                found[0].root(0, 1)
    return found


def run_case(bench, part, case):
    folder = tempfile.mkdtemp(dir=bench.folder)
    peers = peers_of(part, case)
    contestants = our_contestants(bench, part, case, folder) + (peers(bench, case, folder) if peers else [])
    print(f"# {part}: {case.name} {case.hidden}", file=sys.stderr, flush=True)
    measure(bench, part, case, contestants)
    for c in contestants:
        c.close()
    for versions in sorted({re.sub(r", \d+ threads", "", c.versions()) for c in contestants} - {""}):
        bench.note(versions)
    shutil.rmtree(folder)


def run_cases(bench, part):
    wants = WANTED[part][1] if part in WANTED else lambda case: True
    for i in range(bench.options.rounds):
        bench.last_round = i == bench.options.rounds - 1
        for case in filter(wants, cases_of(bench.options, part == "precisions")):
            run_case(bench, part, case)


def run_linearizer(bench):
    """Records means over the minibatches of the least times of all rounds; each number of threads has a process of its own."""
    for case in cases_of(bench.options):
        for threads in threads_of(bench):
            c = ours(bench, case, "espalier", threads)
            for batch in map(int, bench.options.batches.split(",")):
                firsts = [i * batch for i in range(bench.options.minibatches)]
                runs = bench.options.rounds * bench.options.turns * bench.options.repeats
                rows = [c.numbers(f"phases {first} {batch} {runs}") for first in firsts]
                linearize, fill, whole = (statistics.fmean(column) / 1000 for column in zip(*rows))
                bench.record("linearizer", case=case.name, hidden=case.hidden, batch=batch, threads=threads, linearize_ms=linearize,
                             fill_ms=fill, min_ms=whole)
            c.close()


def run_summary(bench):
    bench.last_round = True
    for case in cases_of(bench.options):
        if case.name in SUMMARY and case.hidden == 256:
            run_case(bench, "summary", case)


def processor():
    with open("/proc/cpuinfo") as file:
        values = dict(re.findall(r"(?m)^([^\t:]+)\s*: (.*)$", file.read()))
    numbers = "/".join(values[name] for name in ("cpu family", "model") if name in values)
    return values.get("model name", "unknown") + (f" ({numbers})" if numbers else "")


# --- memory ---

def memory_contestants(bench, case, folder):
    """Processes with weights of a folder. Espalier finds its program in the cache, as in use. DyNet's pools are small at first,
    so that what it needs is seen."""
    keeper = ours(bench, case, "espalier", 1, "--keep", folder)
    keeper.root(0, 1)
    keeper.close()
    found = [ours(bench, case, "espalier", threads) for threads in threads_of(bench)]
    if case.peer == "torch":
        without = ("espalier inputs", 1, "--rules=-tables")
        ours(bench, case, *without).close()  # compiles
        found.append(ours(bench, case, *without))
    for version, python in torch_of(bench).items():
        driver = ["torch_trees.py", case.name, folder] if case.peer == "torch" else ["torch_rnn.py", folder]
        found.append(Contestant(bench, f"torch {version}", 1, [python, os.path.join(PEERS, driver[0]), *driver[1:]]))
    return found + (dynet_peers(bench, case, folder, "16") if case.peer == "torch" else [])


def record_memory(bench, case, c, weights):
    """Records peaks of the resident set: before the model, after binding and after all minibatches of all sizes."""
    start, bound = c.numbers("memory")
    for batch in map(int, bench.options.batches.split(",")):
        for i in range(bench.options.minibatches):
            c.times(i * batch, batch, 1)
    _, peak = c.numbers("memory")
    bench.record("memory", case=case.name, hidden=case.hidden, kind=c.kind, threads=c.threads, weights=weights, start=1024 * start,
                 bound=1024 * bound, peak=1024 * peak)


def run_memory(bench):
    for case in filter(WANTED["memory"][1], cases_of(bench.options)):
        with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
            print(f"# memory: {case.name} {case.hidden}", file=sys.stderr, flush=True)
            for c in memory_contestants(bench, case, folder):
                record_memory(bench, case, c, os.path.getsize(os.path.join(folder, "weights.safetensors")))
                c.close()


# --- back ends ---

BACKENDS = ("llvm", "gccjit")


def measure_backends(bench, case):
    """Compiles and times a case with each back end, without the cache."""
    options = bench.options
    contestants = [ours(bench, case, name, 1, "--backend", name, "--no-cache") for name in BACKENDS]
    check_outputs(contestants)
    compile_ms = {c.name: float(c.ask("compile")) for c in contestants}
    print(f"# backends: {case.name} {case.hidden}", file=sys.stderr, flush=True)
    for batch in map(int, options.batches.split(",")):
        samples = [{c.name: Samples() for c in contestants} for _ in range(options.minibatches)]
        for i, minibatch in enumerate(samples):
            ask_alternately(bench, contestants, i * batch, batch, minibatch)
        for c in contestants:
            minima = [min(minibatch[c.name].times) for minibatch in samples]
            bench.record("backends", case=case.name, hidden=case.hidden, batch=batch, kind=c.kind,
                         min_ms=statistics.fmean(minima) / 1000, compile_ms=compile_ms[c.name])
    for c in contestants:
        c.close()


def run_backends(bench):
    for name in BACKENDS:
        if not os.path.exists(os.path.join(bench.options.build, ".libs", f"espalier-{name}.so")):
            return bench.note(f"the back end {name} is not built")
    for case in cases_of(bench.options):
        measure_backends(bench, case)


# --- parts that other programs measure ---

def binary_trees(bench, folder):
    """The path of a file of bracketed binary trees."""
    if os.path.exists(bench.options.trees):
        return bench.options.trees
    case = Case(["", "bench/models/treelstm.ra", "made", "D=8,V=8", "-", "-", "-"], 8)
    subprocess.run([bench.serve, *arguments_of(bench, case, "--keep", folder, "--threads", "1")], stdin=subprocess.DEVNULL, check=True)
    path = os.path.join(folder, "trees.ptb")
    with open(os.path.join(folder, "structures.txt")) as lines, open(path, "w") as file:
        for line in lines:
            texts, numbers = [], iter(map(int, line.split()))
            for word in numbers:
                children = [texts[next(numbers)] for _ in range(next(numbers))]
                texts.append(f"(2 {' '.join(children) or f'w{word % 1000}'})")
            file.write(texts[-1] + "\n")
    return path


def run_hand(bench):
    hand, model = os.path.join(bench.options.build, "bench", "hand", "treelstm"), os.path.join(HERE, "hand", "treelstm.ra")
    if not os.access(hand, os.X_OK):
        return bench.note(f"no {hand} (make bench-programs)")
    trees = binary_trees(bench, bench.folder)
    for hidden in bench.options.hidden.split(","):
        for batch in bench.options.batches.split(","):
            for threads in bench.options.threads.split(","):
                done = subprocess.run(bench.realtime + [hand, hidden, batch, threads, trees, "--model", model],
                                      capture_output=True, text=True)
                if done.returncode == SKIPPED:
                    return bench.note(done.stderr.strip())
                done.check_returncode()
                times = [float(ms) for ms in re.findall(r"(?:hand|library) +([0-9.]+) ms", done.stdout)]
                bits = int(re.search(r"vectors of (\d+)", done.stdout)[1])
                bench.record("hand", hidden=int(hidden), batch=int(batch), threads=int(threads), bits=bits, hand_ms=times[0],
                             min_ms=times[1])


def run_start(bench):
    """Times processes that run one tree of the example with trained weights."""
    start, example = os.path.join(bench.options.build, "bench", "start"), os.path.join(TOP, "examples", "treelstm")
    files = [os.path.join(example, name) for name in ("treelstm.ra", "sst-treelstm-small.safetensors", "sst-vocab.txt")]
    tree = os.path.join(bench.folder, "one.ptb")
    with open(os.path.join(example, "sentences.ptb")) as trees, open(tree, "w") as file:
        file.write(trees.readline())
    command = os.path.join(bench.options.build, ".libs", "espalier")
    said = subprocess.run([start, "-n", str(bench.options.starts), command, *files, tree], capture_output=True, text=True,
                          check=True).stdout
    for line in said.splitlines():
        phases = dict(re.findall(r"(process|first result|least|load or compile|bind|linearize|run|version) +([0-9.]+)", line))
        bench.record("start", cache=line.split()[0], **{name: float(ms) for name, ms in phases.items()})


def run_command(bench, part, case, *more):
    """Records a case measured by `espalier bench`."""
    said = subprocess.run(bench.realtime + [bench.command, "bench", *arguments_of(bench, case, "--format", "json", *more)], capture_output=True, text=True, check=True)
    for line in said.stdout.splitlines():
        values = json.loads(line)
        if "machine" not in values:
            bench.record(part, case=case.name, hidden=case.hidden, **values)


def run_batches(bench):
    """Measures two of the cases, or those of --cases."""
    for case in cases_of(bench.options):
        if bench.options.cases or case.name in ("treelstm look-up", "treegru look-up"):
            run_command(bench, "batches", case, "--batches", "1,2,4,8,16,32,64,128,256", "--minibatches", "3",
                        "--threads", bench.options.threads)


def run_nodes(bench):
    """Uses a narrow model, so that the largest minibatch fits in memory, and random structures, so that all are alike."""
    case = Case(["treernn look-up", "bench/models/treernn.ra", "made", "D=H,V=2000", "-", "-", "-"], 16)
    for batch in (3, 27, 270, 2700, 27000, 90000, 270000):
        run_command(bench, "nodes", case, "--batches", str(batch), "--minibatches", "1", "--runs",
                    str(max(3, 3000 // batch)), "--threads", bench.options.threads)


# --- open loads ---

def measure_load(bench, case, c, capacity, lone):
    """A server with each window: latencies at shares of its own capacity, and the rate with good latencies."""
    for wait in WINDOWS:
        good = window.good_rate(c.serve, wait, capacity, lone, bench.options.seconds)
        for load in window.LOADS:
            arrivals = window.arrivals_of(load * capacity, bench.options.seconds, 7)
            found = window.latencies_of(c.serve, arrivals, wait)
            shares = {name: window.percentile(found, share) * 1e3 for name, share in (("p50_ms", .5), ("p99_ms", .99), ("p999_ms", .999))}
            bench.record("load", case=case.name, hidden=case.hidden, kind=c.kind, threads=c.threads, waits=c.waits, window_ms=wait * 1e3,
                         capacity=capacity, lone_ms=lone * 1e3, load=load, requests=len(found), good=good, **shares)


def load_contestants(bench, case, folder):
    """Of each library all that may be the fastest; nodes one by one never are."""
    enough = ("--batches", str(window.IN_FLIGHT), "--minibatches", "10")
    found = [ours(bench, case, "espalier", threads_of(bench)[0], "--keep", folder, *enough)]
    found[0].root(0, 1)  # after its answer the folder is complete
    found += [ours(bench, case, "espalier", threads, *enough) for threads in threads_of(bench)[1:]]
    return found + [c for c in tree_peers(bench, case, folder) if "node" not in c.kind and "onnx" not in c.kind]


def run_load(bench):
    """Measures the contestant of each library whose capacity is the highest."""
    for case in filter(WANTED["load"][1], cases_of(bench.options)):
        with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
            print(f"# load: {case.name} {case.hidden}", file=sys.stderr, flush=True)
            contestants, best = load_contestants(bench, case, folder), {}
            check_outputs(contestants)
            for c in contestants:
                c.signal(signal.SIGCONT)
                capacity = max(window.closed_loop(c.serve, window.IN_FLIGHT, bench.options.seconds) for _ in range(3))
                lone = window.lone_latency(c.serve, 100)
                c.signal(signal.SIGSTOP)
                library = c.kind.split()[0]
                best[library] = max(best.get(library, (0,)), (capacity, lone, c), key=lambda found: found[0])
            for capacity, lone, c in best.values():
                c.signal(signal.SIGCONT)
                measure_load(bench, case, c, capacity, lone)
                c.signal(signal.SIGSTOP)
            for c in contestants:
                c.close()


RUN = {"floor": lambda b: run_cases(b, "floor"), "linearizer": run_linearizer, "summary": run_summary, "torch": lambda b: run_cases(b, "torch"),
       "rnn": lambda b: run_cases(b, "rnn"), "precisions": lambda b: run_cases(b, "precisions"),
       "models": lambda b: run_cases(b, "models"), "memory": run_memory, "cortex": lambda b: None, "backends": run_backends, "hand": run_hand, "start": run_start,
       "batches": run_batches, "nodes": run_nodes, "load": run_load}


def measured_folder(options, parts):
    """Measures, and returns the folder with the results."""
    os.makedirs(options.output, exist_ok=True)
    open(os.path.join(options.output, "results.jsonl"), "w").close()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        bench.record("processor", name=processor(), cores=os.cpu_count())
        for part in parts:
            RUN[part](bench)
    return options.output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="(all)")
    parser.add_argument("--cases", help="names of cases.tsv with commas between (all)")
    parser.add_argument("--hidden", default="256,512", help="(%(default)s)")
    parser.add_argument("--batches", default="1,10", help="(%(default)s)")
    parser.add_argument("--threads", default="1,2", help="(%(default)s)")
    parser.add_argument("--precisions", default="f32,f16,bf16,i16,i8x3,i8",
                        help="of the part precisions; others are compared with the first (%(default)s)")
    parser.add_argument("--rules", help="of that part, as --rules=-tables: Espalier computes input projections as DyNet does")
    parser.add_argument("--minibatches", type=int, default=10, help="of each size (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="rounds over all cases of a part (%(default)s)")
    parser.add_argument("--turns", type=int, default=4, help="times that each contestant runs a minibatch in a round (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="runs each time (%(default)s)")
    parser.add_argument("--starts", type=int, default=21, help="processes of the part start (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="that each load of the part load lasts (%(default)s)")
    parser.add_argument("--realtime", action="store_true", help="contestants run at real-time priority (chrt)")
    parser.add_argument("--pythons", default="/usr/bin/python3,/opt/espalier-peers/bin/python,python3",
                        help="interpreters, whose packages are peers: every version of PyTorch, the first ONNX Runtime (%(default)s)")
    parser.add_argument("--build", default=os.path.join(TOP, "build"), help="(%(default)s)")
    parser.add_argument("--trees", default=os.path.join(TOP, "..", "shared", "data", "sst", "test-a.txt"),
                        help="bracketed binary trees; without the file, trees are random (%(default)s)")
    parser.add_argument("--output", default="bench-results", help="(%(default)s)")
    parser.add_argument("--from", dest="recorded", help="folders with results, with commas between; nothing is measured")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    missing = None if options.recorded else missing_of(parts, options)
    if missing:
        parser.error(missing)
    for folder in options.recorded.split(",") if options.recorded else (measured_folder(options, parts),):
        with open(os.path.join(folder, "results.jsonl")) as file:
            records = [json.loads(line) for line in file]
        tables.show(records, parts, read_table(os.path.join(HERE, "cases.tsv")), read_table(os.path.join(HERE, "cortex.tsv")))
        plots.draw(records, folder)


if __name__ == "__main__":
    main()
