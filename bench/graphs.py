#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Runs whole ONNX graphs by Espalier and by ONNX Runtime: the same file and the same inputs, in one run.

  graphs.py FOLDER [NAME...] [--parts compare,time,compile,counts,stages] [--threads 1,2] [--batches 1,8] [--lengths 128,32]
                             [--seconds S] [--priority P] [--schedule TEXT] [--mutants S] [--output FILE.jsonl]
  graphs.py --from FILE.jsonl [FILE.jsonl...]      only the tables, in Markdown

FOLDER has the files of graph_files.py. Prints a line for each measurement, then tables, and adds records to the output.

compare  all outputs: the largest difference divided by the largest absolute value of ONNX Runtime's output
time     milliseconds of a call from arrays to arrays, without loading and compiling. Each program is a process of its own, and
         while one takes its turn all others are stopped. With several threads ONNX Runtime is there twice, with threads that
         spin while they wait and with threads that sleep; the faster one counts, by least and by median
compile  from the start of reading the file until the program has all its code and weights, with an empty cache and with
         the program in it; and what of this is reading the file, making the program, and binding weights and the first run
counts   what `espalier explain` counts: layers before and after, of these so many that only move elements, then all as written
         without fusion, and as computed
stages   without ONNX Runtime: times and counts as written, with every operator a loop nest; rewritten; also fused; and with --mutants S
         also by the mutants that `espalier tune --mutants` finds in so many seconds. Only where it is named in --parts

Python packages espalier, onnxruntime, onnx, numpy. Unset OPENBLAS_CORETYPE and the like before.
"""
import argparse
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TURN = 0.03  # seconds of a turn, at least a run and one before it that does not count
WORDS = 10000  # tokens are below it, whatever the vocabulary of a file


# --- what is run ---


def open_onnxruntime(path, sizes, threads, spin):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    settings.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
    for size, extent in sizes.items():
        settings.add_free_dimension_override_by_name(size, extent)
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs)))


def open_espalier(path, sizes, threads, cache=None, schedule=None, rules=None):
    import espalier

    context = espalier.Context(threads=threads, cache_dir=cache)
    model = espalier.load(path, sizes=sizes, context=context, schedule=schedule, rules=rules).prepare()
    names = [output.name for output in model.outputs]  # of the file

    def run(inputs):
        found = model(inputs)[0]
        return {name: found.root(name) for name in names}

    return run


OPEN = {
    "espalier": open_espalier,
    "onnxruntime": lambda *setting: open_onnxruntime(*setting, spin=True),
    "onnxruntime, asleep": lambda *setting: open_onnxruntime(*setting, spin=False),
}


def sizes_of(path):
    """The names of sizes that a file leaves open."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    return {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param}


def random_inputs(path, sizes):
    """Arrays for the inputs of a file: tokens, masks that end earlier in every other row, numbers."""
    import onnx

    generator = np.random.default_rng(0)
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in weights:
            continue
        kind = value.type.tensor_type
        shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type == onnx.TensorProto.FLOAT:
            inputs[value.name] = generator.normal(0, 1, shape).astype(np.float32)
        elif value.name == "mask":
            inputs[value.name] = np.ones(shape, np.int64)
            inputs[value.name][1::2, shape[1] * 3 // 4:] = 0
        else:
            inputs[value.name] = generator.integers(0, WORDS, shape)
    return inputs


# --- processes ---


def set_priority(priority):
    """Gives all threads of this process a real-time priority, or with 0 none."""
    policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
    for thread in os.listdir("/proc/self/task"):
        os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


def serve(pipe, name, path, sizes, threads, priority, options):
    """Answers requests: "run" a number of times with seconds, "outputs" with arrays."""
    try:
        run = OPEN[name](path, sizes, threads, **options)
        inputs = random_inputs(path, sizes)
        run(inputs)
    except Exception as error:  # told to the other end
        pipe.send(error if isinstance(error, (ValueError, TypeError)) else RuntimeError(str(error)))
        return
    pipe.send(None)
    while (request := pipe.recv()) is not None:
        if request == "outputs":
            pipe.send({output: np.array(array) for output, array in run(inputs).items()})
            continue
        taken = []
        set_priority(priority)
        for _ in range(request + 1):
            begin = time.perf_counter()
            run(inputs)
            taken.append(time.perf_counter() - begin)
        set_priority(0)
        pipe.send(taken[1:])


class Contestant:
    """A process that is stopped but while it is asked."""

    def __init__(self, name, path, sizes, threads, priority=0, **options):
        processes = multiprocessing.get_context("spawn")
        self.pipe, other = processes.Pipe()
        self.process = processes.Process(target=serve, args=(other, name, path, sizes, threads, priority, options), daemon=True)
        self.process.start()
        other.close()
        self.repeats, self.taken = 1, []
        error = self.pipe.recv()
        if error is not None:
            raise error
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def ask(self, request):
        self.signal(signal.SIGCONT)
        self.pipe.send(request)
        answer = self.pipe.recv()
        self.signal(signal.SIGSTOP)
        return answer

    def take_turn(self):
        taken = self.ask(self.repeats)
        self.repeats = max(1, int(TURN / statistics.median(taken)))
        self.taken += taken

    def close(self):
        self.signal(signal.SIGCONT)
        self.pipe.send(None)
        self.process.join()


def open_all(names, *setting, schedule, priority=0):
    own = {"espalier": {"schedule": schedule}}
    return {name: Contestant(name, *setting, priority=priority, **own.get(name, {})) for name in names}


# --- parts: each returns what its record has ---


def worst_error(found, wanted):
    """The largest difference of an output, divided by its largest absolute value; the largest of these."""
    worst = 0.0
    for name, array in wanted.items():
        other = found[name].reshape(array.shape)
        largest = float(np.abs(array).max())
        if not np.isfinite(largest) or largest == 0:
            raise RuntimeError(f"output {name}: {largest} is its largest value: nothing to compare")
        error = float(np.abs(other.astype(np.float64) - array).max()) / largest
        worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def compare(path, sizes, threads, options):
    both = open_all(["espalier", "onnxruntime"], path, sizes, threads, schedule=options.schedule)
    found, wanted = (both[name].ask("outputs") for name in both)
    for each in both.values():
        each.close()
    return {"error": worst_error(found, wanted)}


def measure(path, sizes, threads, options):
    names = list(OPEN) if threads > 1 else list(OPEN)[:2]
    return take_turns(open_all(names, path, sizes, threads, schedule=options.schedule, priority=options.priority), options.seconds)


def take_turns(contestants, seconds):
    for each in contestants.values():
        each.take_turn()  # how often it runs in a turn
        each.taken.clear()
    end, rounds = time.perf_counter() + seconds * len(contestants), 0
    while time.perf_counter() < end or rounds < 3:
        for each in contestants.values():
            each.take_turn()
        rounds += 1
    record = {}
    for name, each in contestants.items():
        record[name] = {"median": statistics.median(each.taken) * 1e3, "least": min(each.taken) * 1e3, "runs": len(each.taken)}
        each.close()
    return record


def time_compilation(pipe, path, sizes, threads, cache, schedule):
    import espalier

    inputs = random_inputs(path, sizes)
    context = espalier.Context(threads=threads, cache_dir=cache)
    times = [time.perf_counter()]
    text = espalier.ModelText.read(context, str(path), tuple(sizes.items()), (), ())
    weights = text.weights()
    times.append(time.perf_counter())
    model = espalier.load(text, weights, context=context, schedule=schedule)
    times.append(time.perf_counter())
    model.prepare()
    times.append(time.perf_counter())
    model(inputs)
    times.append(time.perf_counter())
    pipe.send([(b - a) * 1e3 for a, b in zip(times, times[1:])])


def in_process(function, *arguments):
    processes = multiprocessing.get_context("spawn")
    pipe, other = processes.Pipe()
    process = processes.Process(target=function, args=(other, *arguments))
    process.start()
    other.close()
    try:
        return pipe.recv()
    finally:
        process.join()


def measure_compilation(path, sizes, threads, options):
    record = {}
    with tempfile.TemporaryDirectory() as cache:
        in_process(time_compilation, path, sizes, threads, None, "fuse none\n")  # the machine is measured, the file is in memory
        for what in ("cold", "cached"):
            read, load, prepare, first = in_process(time_compilation, path, sizes, threads, cache, options.schedule)
            record[what] = {"read": read, "load": load, "prepare": prepare, "first run": first}
    return record


def run_command(words, schedule=None):
    """What a command of `espalier` writes, with a schedule given as text."""
    with tempfile.NamedTemporaryFile("w", suffix=".sched") as file:
        file.write(schedule or "")
        file.flush()
        words = [*words, "--schedule", file.name] if schedule else words
        done = subprocess.run([sys.executable, "-c", "from espalier._command import main; main()", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def words_of_sizes(sizes):
    return ["--sizes", ",".join(f"{size}={extent}" for size, extent in sizes.items())] if sizes else []


def explain(path, sizes, schedule, rules="all"):
    """What the command `espalier explain` counts, which binds no weights."""
    return json.loads(run_command(["explain", str(path), "--format", "json", "--rules", rules, *words_of_sizes(sizes)], schedule))


def sum_counts(explanation, which):
    """The counts of all bodies that a run computes."""
    counted = [body[which] for body in explanation["bodies"] if body["name"] != "binding" and body[which]]
    return {key: sum(each[key] for each in counted) for key in counted[0]}


def count(path, sizes, threads, options):
    record = {}
    for what, which, schedule in (("before", "written", "fuse none\n"), ("after", "computed", options.schedule)):
        explanation = explain(path, sizes, schedule)
        record["layers"] = {key: explanation["layers"][key] for key in ("before", "after", "moves")}
        record[what] = sum_counts(explanation, which)
    return record


# --- stages of compiling, switched on one after the other ---

STAGES = {
    "as written": {"rules": "none", "schedule": "fuse none\n"},
    "rewritten": {"rules": "all", "schedule": "fuse none\n"},
    "fused": {"rules": "all", "schedule": None},
}


def tune_mutants(path, sizes, threads, seconds):
    """The schedule with the fastest mutants that a search finds in so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for name, array in random_inputs(path, sizes).items():
            file = Path(folder) / f"{len(words)}.npy"
            np.save(file, array)
            words += ["--input", f"{name}={file}"]
        found = Path(folder) / "mutants.sched"
        run_command(["tune", str(path), "--mutants", "--seconds", str(seconds), "--threads", str(threads), "-o", str(found),
                     *words_of_sizes(sizes), *words])
        return found.read_text()


def measure_stages(path, sizes, threads, options):
    stages = dict(STAGES)
    if options.mutants:
        stages["mutants"] = {"rules": "all", "schedule": tune_mutants(path, sizes, threads, options.mutants)}
    counts = {name: sum_counts(explain(path, sizes, stage["schedule"], stage["rules"]), "computed") for name, stage in stages.items()}
    times = take_turns({name: Contestant("espalier", path, sizes, threads, options.priority, **stage) for name, stage in stages.items()},
                       options.seconds)
    return {"stages": {name: {**counts[name], **times[name]} for name in stages}}


PARTS = {"compare": compare, "time": measure, "compile": measure_compilation, "counts": count, "stages": measure_stages}


# --- records and tables ---


def settings_of(path, part, options):
    """The sizes and threads with which a part runs a file: all of them when it measures time."""
    open_sizes = sizes_of(path)
    whole = part in ("time", "compare")
    for threads in options.threads if part in ("time", "stages") else options.threads[:1]:
        for batch in options.batches if whole else options.batches[:1]:
            for length in options.lengths if whole and "length" in open_sizes else options.lengths[:1]:
                yield {k: v for k, v in (("batch", batch), ("length", length)) if k in open_sizes}, threads


def fastest(record, key):
    """The least time of ONNX Runtime's ways to wait."""
    return min(times[key] for name, times in record.items() if name.startswith("onnxruntime"))


def describe(record):
    if "error" in record:
        return f"worst error {record['error']:.2g}"
    if "espalier" in record:
        own, other = record["espalier"], {key: fastest(record, key) for key in ("median", "least")}
        return (f"{own['median']:.3f} (least {own['least']:.3f}) ms, onnxruntime {other['median']:.3f} ({other['least']:.3f}), "
                f"ratio {other['median'] / own['median']:.2f} ({other['least'] / own['least']:.2f})")
    if "stages" in record:
        return ", ".join(f"{name} {stage['median']:.2f} ms" for name, stage in record["stages"].items())
    if "cold" in record:
        return ", ".join(f"{what} {sum(times.values()):.0f} ms" for what, times in record.items() if isinstance(times, dict))
    return json.dumps({key: record[key] for key in ("layers", "before", "after")})


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else float("nan")


def print_table(heading, rows):
    print("\n| " + " | ".join(heading) + " |\n|" + "---|" * len(heading))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def size_text(record):
    return ", ".join(f"{size} {extent}" for size, extent in record["sizes"].items())


def print_times(records):
    rows, ratios = [], {}
    for record in records:
        of_threads = {r["threads"]: r for r in records if r["name"] == record["name"] and r["sizes"] == record["sizes"]}
        if record is not next(iter(of_threads.values())):
            continue
        row = [record["name"], size_text(record)]
        for threads in sorted({r["threads"] for r in records}):
            each = of_threads.get(threads)
            if not each:
                row += ["", "", ""]
                continue
            own, other = each["espalier"], fastest(each, "median")
            row += [f"{own['median']:.2f} ({own['least']:.2f})", f"{other:.2f} ({fastest(each, 'least'):.2f})",
                    f"{other / own['median']:.2f}"]
            ratios.setdefault(threads, []).append(other / own["median"])
        rows.append(row)
    heading = ["graph", "sizes"]
    for threads in sorted(ratios):
        heading += [f"{threads} threads, ms" if threads > 1 else "1 thread, ms", "ONNX Runtime", "ratio"]
    print_table(heading, rows)
    for threads, found in sorted(ratios.items()):
        print(f"\nGeometric mean of {len(found)} ratios, {threads} threads: {geometric_mean(found):.3f}")


def print_counts(records):
    keys = ("sub_ops", "groups", "barriers", "stored", "bytes", "operations")
    rows = []
    for record in records:
        layers = record["layers"]
        row = [record["name"], size_text(record), f"{layers['before']:,} → {layers['after']:,}", str(layers["moves"]),
               f"{layers['after'] / layers['before']:.2f}"]
        for key in keys:
            shown = [record[what][key] for what in ("before", "after")]
            row.append(" → ".join(f"{x / 1e6:,.1f}" if key in ("bytes", "operations") else f"{x:,.0f}" for x in shown))
        rows.append(row)
    print_table(["graph", "sizes", "layers", "moves", "after ÷ before", "sub-operators", "groups", "barriers", "stored", "MB moved", "Mop"], rows)


def print_stages(records):
    threads, rows = sorted({r["threads"] for r in records}), []
    for first in (r for r in records if r["threads"] == threads[0]):
        alike = [r for r in records if (r["name"], r["sizes"]) == (first["name"], first["sizes"])]
        for name, stage in first["stages"].items():
            row = [first["name"], name, f"{stage['groups']:,}", f"{stage['operations'] / 1e6:,.1f}", f"{stage['bytes'] / 1e6:,.1f}"]
            for record in alike:
                own, whole = record["stages"][name], record["stages"]["as written"]
                row += [f"{own['median']:.2f} ({own['least']:.2f})", f"{whole['median'] / own['median']:.2f}"]
            rows.append(row)
    heading = ["graph", "stage", "loop nests", "Mop", "MB moved"]
    for n in threads:
        heading += [f"{n} thread{'s' * (n > 1)}, ms", "times as fast"]
    print_table(heading, rows)


def print_tables(records):
    of_part = {part: [r for r in records if r["part"] == part and "refused" not in r] for part in PARTS}
    if of_part["compare"]:
        print_table(["graph", "sizes", "worst error"], [[r["name"], size_text(r), f"{r['error']:.1e}"] for r in of_part["compare"]])
    if of_part["time"]:
        print_times(of_part["time"])
    if of_part["compile"]:
        print_table(["graph", "sizes", "cold, ms", "read", "load", "prepare", "first run", "from the cache, ms", "read", "load", "prepare", "first run"],
                    [[r["name"], size_text(r), *(f"{t:.0f}" for what in ("cold", "cached") for t in (sum(r[what].values()), *r[what].values()))]
                     for r in of_part["compile"]])
    if of_part["counts"]:
        print_counts(of_part["counts"])
    if of_part["stages"]:
        print_stages(of_part["stages"])
    for record in records:
        if "refused" in record:
            print(f"\n{record['name']}, {record['part']}, {size_text(record)}: {record['refused']}")


def run_parts(options, parser):
    paths = {path.stem: path for path in sorted(options.folder.glob("*.onnx"))}
    for name in set(options.names) - set(paths):
        parser.error(f"{options.folder} has no {name}.onnx")
    for name in options.names or paths:
        for part in options.parts:
            for sizes, threads in settings_of(paths[name], part, options):
                record = {"name": name, "part": part, "sizes": sizes, "threads": threads}
                try:
                    record |= PARTS[part](paths[name], sizes, threads, options)
                    told = describe(record)
                except (RuntimeError, ValueError, TypeError, EOFError) as error:
                    told = record["refused"] = str(error) or type(error).__name__
                print(f"{name} {part} {size_text(record)}, {threads} threads: {told}", flush=True)
                yield record


def main():
    numbers = lambda text: [int(number) for number in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["compare", "time", "compile", "counts"])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--batches", type=numbers, default=[1, 8])
    parser.add_argument("--lengths", type=numbers, default=[128, 32])
    parser.add_argument("--seconds", type=float, default=2, help="of measuring, for each program")
    parser.add_argument("--priority", type=int, default=0, help="real-time priority of what is timed, on a machine that others use")
    parser.add_argument("--schedule", help="of Espalier's programs")
    parser.add_argument("--mutants", type=int, help="seconds of the search for mutants, in the part stages; without it there is none")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--from", dest="sources", type=Path, nargs="+")
    options = parser.parse_intermixed_args()
    if options.sources:
        print_tables([json.loads(line) for source in options.sources for line in source.read_text().splitlines()])
        return
    if not options.folder or set(options.parts) - set(PARTS):
        parser.error(f"a folder is needed, and parts are {', '.join(PARTS)}")
    records = []
    for record in run_parts(options, parser):
        records.append(record)
        if options.output:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    print_tables(records)


if __name__ == "__main__":
    main()
