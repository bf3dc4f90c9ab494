# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The tables of bench.py, each from the records of its part, with the part's summary figure below. Those of doc/performance.md
are Markdown."""
import math
import re
import statistics


def geometric_mean(values):
    values = list(values)
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else math.nan


def chosen(records, part, **wanted):
    return [r for r in records if r["part"] == part and all(r.get(key) == value for key, value in wanted.items())]


def keys_of(records):
    """(case, hidden, batch) in the order in which they were measured."""
    return list(dict.fromkeys((r["case"], r["hidden"], r["batch"]) for r in records))


def at(records, key, **wanted):
    return [r for r in records if (r["case"], r["hidden"], r["batch"]) == key
            and all(r[name] == value for name, value in wanted.items())]


def fastest(records):
    return min(records, key=lambda r: r["min_ms"], default=None)


def print_heading(text):
    print(f"\n== {text}\n")


def print_table(header, rows):
    """Markdown, with an empty line below."""
    for cells in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(map(str, cells)) + " |")
    print()


def number_text(value):
    """Three digits that count."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def threads_word(threads):
    return f"{threads} thread" + "s" * (threads > 1)


def best_machine(a, b):
    """The best of two measurements. While two threads share a core their barrier is fastest, but they do not reach the peak:
    that barrier does not count (src/base/measure.c)."""
    most = max(a["gflops"], b["gflops"])
    read = [{"bytes": p["bytes"], "gbs": max(p["gbs"], q["gbs"])} for p, q in zip(a["read"], b["read"])]
    return {**a, "gflops": most, "read": read,
            "barrier_us": min(m["barrier_us"] for m in (a, b) if m["gflops"] > 0.9 * most)}


def machines(records):
    """Threads -> the best of all measurements with so many threads."""
    best = {}
    for r in chosen(records, "machine"):
        best[r["threads"]] = best_machine(best.get(r["threads"], r), r)
    return best


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def show_machine(records):
    found = machines(records)
    names = [f": {r['name']}, {r['cores']} processors" for r in chosen(records, "processor")][:1]
    print_heading("the machine" + "".join(names))
    if found:
        sizes = [point["bytes"] for point in next(iter(found.values()))["read"]]
        print("What a core does, all of so many computing or reading at once; GB/s by working set:\n")
        print_table(["threads", "vectors", "GFLOP/s", "barrier, us", *map(size_text, sizes)],
                    [[threads, m["vector"], f"{m['gflops']:.1f}", f"{m['barrier_us']:.2f}", *[f"{point['gbs']:.0f}" for point in m["read"]] + [""] * (len(sizes) - len(m["read"]))]
                     for threads, m in sorted(found.items())])
    for text in dict.fromkeys(r["text"] for r in chosen(records, "note")):
        print(f"({text})")


def undisturbed(r):
    """Milliseconds that floors are compared with."""
    return r.get("quiet_ms", r["min_ms"])


def show_floor(records, cases, cortex):
    """Two tables: the cases whose geometric mean is a target, and the others, each of which has one."""
    more = {row[0] for row in cases if row[7:] == ["more"]}
    measured = chosen(records, "floor", kind="espalier")
    first, second = ([r for r in measured if (r["case"] in more) == wanted] for wanted in (False, True))
    if first:
        print_heading("floor / time")
        print_floor(first)
        for t in sorted({r["threads"] for r in first}):
            show_share([r for r in first if r["threads"] == t], t)
        show_threads(first)
        show_linearizer(first, cases)
    if second:
        print_heading("floor / time of the other models")
        print_floor(second)
        show_least(second)


def print_floor(measured):
    threads = sorted({r["threads"] for r in measured})
    header = ["case", "hidden", "batch"]
    for t in threads:
        header += [f"{threads_word(t)}: ms undisturbed; least / median", "floor ÷ time"]
    rows = []
    for key in keys_of(measured):
        rows.append(list(key))
        for t in threads:
            for r in at(measured, key, threads=t):
                times = map(number_text, (undisturbed(r), r["min_ms"], r["median_ms"]))
                rows[-1] += ["{}; {} / {}".format(*times), f"{share(r):.2f}"]
        both = [at(measured, key, threads=t) for t in (1, 2)]
        if all(both):
            rows[-1].append(f"{gain(*both):.2f}")
    if any(len(row) > len(header) for row in rows):
        header.append("times faster with two")
    print_table(header, rows)


def show_least(rows):
    best = [max(at(rows, key), key=share) for key in keys_of(rows)]
    low = [f"{r['case']} {r['hidden']} batch {r['batch']}: {share(r):.2f}" for r in best if share(r) < 0.65]
    print(f"the better of one and two threads: {len(best) - len(low)} of {len(best)} have 0.65 or more (wanted: all)"
          + (f"; below: {', '.join(low)}" if low else ""))
    for t in sorted({r["threads"] for r in rows}):
        shares = [share(r) for r in rows if r["threads"] == t]
        print(f"{threads_word(t)}: {sum(s >= 0.65 for s in shares)} of {len(shares)} have 0.65 or more, least {min(shares):.2f}, geometric "
              f"mean, each at most 1: {geometric_mean(min(1, s) for s in shares):.3f}")


def share(r):
    return r["floor_ms"] / undisturbed(r)


def gain(one, two):
    return undisturbed(one[0]) / undisturbed(two[0])


def show_share(rows, threads):
    large = [r for r in rows if r["floor_ms"] >= 0.020]
    print(f"{threads_word(threads)}: geometric mean of floor / time, each at most 1: "
          f"{geometric_mean(min(1, share(r)) for r in rows):.3f} (wanted with two: 0.80; of whole runs, by the least "
          f"{geometric_mean(min(1, r['floor_ms'] / r['min_ms']) for r in rows):.3f})")
    if large:
        least = min(large, key=share)
        print(f"  least where the floor is 20 us or more: {share(least):.3f}, {least['case']} {least['hidden']} batch "
              f"{least['batch']} (0.70)")


def show_threads(measured):
    gains = [(gain(at(measured, key, threads=1), at(measured, key, threads=2)), key) for key in keys_of(measured) if key[2] == 10 and key[1] >= 256
             and at(measured, key, threads=1) and at(measured, key, threads=2)]
    if gains:
        least = min(gains)
        print(f"two threads against one, batch 10, hidden 256 and more: geometric mean {geometric_mean(g for g, _ in gains):.2f}, "
              f"least {least[0]:.2f}, {least[1][0]} {least[1][1]} (wanted: 1.70)")


def show_linearizer(measured, cases):
    trees = {row[0] for row in cases if row[2] == "tree"}
    shares = [(r["linearize_ms"] / undisturbed(r), r) for r in measured if r["case"] in trees and r["hidden"] == 256]
    if shares:
        most, r = max(shares, key=lambda pair: pair[0])
        print(f"linearizer on trees at hidden 256: {100 * statistics.fmean(share for share, _ in shares):.1f} % of the time in "
              f"the mean, {100 * most:.1f} at most, {r['case']} batch {r['batch']} x{r['threads']} (wanted: 3 at most)")


def show_phases(records, cases, cortex):
    """What a run does before its steps, as shares of its least time."""
    measured = chosen(records, "linearizer")
    threads = sorted({r["threads"] for r in measured})
    print_heading("linearizing")
    rows = []
    for key in keys_of(measured):
        rows.append(list(key))
        for t in threads:
            for r in at(measured, key, threads=t):
                times = [number_text(1000 * r[name]) for name in ("linearize_ms", "fill_ms", "min_ms")]
                rows[-1] += ["{}, {}, {}".format(*times), f"{100 * linearizer_share(r):.1f} %"]
    print_table(["case", "hidden", "batch"] + [word for t in threads for word in (
        f"{threads_word(t)}: us of linearizing, of filling buffers, of a run", "linearizing")], rows)
    if measured:
        above = [r for r in measured if linearizer_share(r) > 0.03]
        print(f"linearizing: {100 * statistics.fmean(map(linearizer_share, measured)):.1f} % in the mean, above 3 % in {len(above)} of "
              f"{len(measured)}: " + ", ".join(f"{r['case']} {r['hidden']} batch {r['batch']} x{r['threads']} {100 * linearizer_share(r):.1f}"
                                              for r in sorted(above, key=linearizer_share, reverse=True)))


def linearizer_share(r):
    return r["linearize_ms"] / r["min_ms"]


def show_peers(records, part, kind, wanted):
    """Compares Espalier with the fastest peer, each with its best number of threads."""
    measured = chosen(records, part)
    peers = list(dict.fromkeys(r["kind"] for r in measured if not r["kind"].startswith("espalier")))
    rows = []
    for key in keys_of(measured):
        mine = fastest(at(measured, key, kind=kind))
        others = [fastest(at(measured, key, kind=peer)) for peer in peers]
        row = [*key, format_cell(mine), *map(format_cell, others)]
        if any(others):
            median = min(other["median_ms"] for other in others if other)
            row += [f"{fastest(filter(None, others))['min_ms'] / mine['min_ms']:.2f}", f"{median / mine['median_ms']:.2f}"]
        rows.append(row)
    if rows:
        print_table(["case", "hidden", "batch", "Espalier", *peers, "best ÷ ours", "medians"], rows)
    for family, aim in wanted.items():
        show_ratios(measured, kind, family, aim)


def show_backends(records, cases, cortex):
    """Compares back ends with the first one."""
    measured = chosen(records, "backends")
    kinds = list(dict.fromkeys(r["kind"] for r in measured))
    print_heading("back ends, one thread: least ms of a run, and ms of the back end")
    print(f"{'':<24}{'hidden':>7}{'batch':>6}" + "".join(f"{kind:>12}" for kind in kinds) + f"{'ratio':>8}"
          + "".join(f"{kind + ' compiles':>18}" for kind in kinds) + f"{'ratio':>8}")
    ratios = {"min_ms": [], "compile_ms": []}
    for key in keys_of(measured):
        rows = [at(measured, key, kind=kind)[0] for kind in kinds]
        for what, found in ratios.items():
            found.append(rows[-1][what] / rows[0][what])
        print(f"{key[0]:<24}{key[1]:>7}{key[2]:>6}" + "".join(f"{r['min_ms']:>12.4f}" for r in rows)
              + f"{ratios['min_ms'][-1]:>8.2f}" + "".join(f"{r['compile_ms']:>18.0f}" for r in rows)
              + f"{ratios['compile_ms'][-1]:>8.1f}")
    if measured:
        print(f"{kinds[-1]} against {kinds[0]}: runs {geometric_mean(ratios['min_ms']):.3f} times as long, "
              f"{max(ratios['min_ms']):.2f} at most (wanted: 1.15); compiling {geometric_mean(ratios['compile_ms']):.1f}")


def show_ratios(measured, kind, family, aim):
    """Ratios over all cases, against the best peer whose name begins with `family`."""
    ratios = []
    for key in keys_of(measured):
        best = fastest(r for r in at(measured, key) if r["kind"].startswith(family) and not r["kind"].startswith("espalier"))
        if best:
            ratios.append(best["min_ms"] / fastest(at(measured, key, kind=kind))["min_ms"])
    if ratios:
        print(f"times the best{f' {family}' if family else ''} peer takes: geometric mean {geometric_mean(ratios):.2f}, least "
              f"{min(ratios):.2f} (wanted: {aim})")


def format_cell(r):
    return f"{number_text(r['min_ms'])} / {number_text(r['median_ms'])}, {threads_text(r)}" if r else ""


def threads_text(r):
    """The number of threads, and how they wait for each other."""
    return f"x{r['threads']}" + (f" {r['waits']}" if r.get("waits") else "")


# Columns of the summary, and a pattern for the names of their peers, whose groups the cell of the fastest one shows. The last
# columns are Espalier's.
SUMMARY = (("PyTorch, node by node", r"torch (\S+) node"), ("PyTorch, by levels", r"torch (\S+ (?:level|script|compile))|torch (\S+)"),
           ("DyNet", "dynet"), ("ONNX Runtime", "onnx"), ("oneDNN", "dnnl"), ("Espalier", "espalier"),
           ("Espalier, no tables", "espalier inputs"))
LEVEL_NAMES = {"level": "eager", "script": "TorchScript", "compile": "torch.compile"}


def summary_cell(r, pattern, mine):
    if not r:
        return "-"
    told = " ".join(LEVEL_NAMES.get(word, word) for word in " ".join(filter(None, re.fullmatch(pattern, r["kind"]).groups())).split())
    how = ", ".join(filter(None, (told, str(r["threads"]), r.get("waits"))))
    ratio = "" if r["kind"].startswith("espalier") else f" = {r['min_ms'] / mine['min_ms']:.1f} x"
    return f"{r['min_ms']:.3g}{ratio} ({how})"


def show_summary(records, cases, cortex):
    """Prints Markdown. Ratios are to Espalier without tables where it has tables: the peers compute input projections, too."""
    measured = chosen(records, "summary")
    columns = [(name, pattern) for name, pattern in SUMMARY if any(re.fullmatch(pattern, r["kind"]) for r in measured)]
    print_heading("Espalier beside others, for the README")
    print("Least ms of a run; in brackets the variant, threads, how they wait:\n")
    print("| model, hidden, batch | " + " | ".join(name for name, _ in columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for key in keys_of(measured):
        mine = fastest(at(measured, key, kind="espalier inputs") or at(measured, key, kind="espalier"))
        cells = [summary_cell(fastest(r for r in at(measured, key) if re.fullmatch(pattern, r["kind"])), pattern, mine)
                 for _, pattern in columns]
        print("| " + " | ".join((", ".join(map(str, key)), *cells)) + " |")


def show_torch(records, cases, cortex):
    print_heading("tree models against PyTorch and DyNet, all computing input projections: ms least / median, threads")
    show_peers(records, "torch", "espalier inputs", {"torch": "4", "dynet": "more"})


def show_rnn(records, cases, cortex):
    print_heading("LSTM and GRU (reset after the product), 100 steps, against libraries: ms least / median, threads")
    show_peers(records, "rnn", "espalier", {"": "1.3, nowhere below 0.95"})


# Precision, what it is compared with, sizes of the minibatch (None = all that were measured), and how many times as fast it is to be
# on a machine with AMX and two threads.
AIMS = (("i8x3", "f32", (1,), 1.8), ("i8x3", "f32", (10,), 2.5), ("i8x3", "f32", (32,), 3.2), ("i8x3", "dynet", (1, 10), 10),
        ("i8x3", "onnx, dnnl", None, 3), ("f16", "f32", None, 3), ("bf16", "f32", None, 3), ("bf16x1", "f32", None, 3), ("i8", "f32", None, 5))


def show_precisions(records, cases, cortex):
    """Each precision beside the first one, then what they gain by the size of the minibatch. Peers of other types than f32 are
    shown, and compared with nothing."""
    measured = chosen(records, "precisions")
    kinds = list(dict.fromkeys(r["kind"] for r in measured))
    ours = [kind for kind in kinds if kind.startswith("espalier ")]
    print_heading("precisions: ms least / median, threads (times as fast as the first)")
    rows = []
    for key in keys_of(measured):
        first, *others = (fastest(at(measured, key, kind=kind)) for kind in kinds)
        rows.append([*key, format_cell(first), *(r and f"{format_cell(r)} ({first['min_ms'] / r['min_ms']:.2f})" or "" for r in others)])
    print_table(["case", "hidden", "batch", *(kind.removeprefix("espalier ") for kind in kinds)], rows)
    references = {ours[0].removeprefix("espalier "): ours[:1], "dynet": ["dynet"], "onnx, dnnl": ["onnx", "dnnl"]}
    print_gains(measured, ours, references)


def print_gains(measured, ours, references):
    batches = sorted({r["batch"] for r in measured})
    rows, found = [], {}
    for name, kinds in references.items():
        for kind in ours:
            precision = kind.removeprefix("espalier ")
            gains = found[precision, name] = gains_of(measured, kind, [other for other in kinds if other != kind])
            every = [gain for of_batch in gains.values() for gain in of_batch]
            if every:
                cells = [f"{geometric_mean(gains[batch]):.2f}" if batch in gains else "" for batch in batches]
                rows.append([precision, name, len(every), *cells, f"{geometric_mean(every):.2f}", f"{min(every):.2f}"])
    print("How many times as fast, geometric means:\n")
    print_table(["precision", "than", "cases", *(f"batch {batch}" for batch in batches), "all", "least"], rows)
    for precision, name, sizes, aim in AIMS:
        gains = [gain for batch, of_batch in found.get((precision, name), {}).items() if not sizes or batch in sizes for gain in of_batch]
        if gains:
            told = f", batch {' and '.join(map(str, sizes))}" if sizes else ""
            print(f"{precision} than {name}{told}: {geometric_mean(gains):.2f} times as fast (wanted with AMX: {aim})")


def gains_of(measured, kind, others):
    """Batch -> how many times as fast a kind is in each case as the fastest of the others there."""
    gains = {}
    for key in keys_of(measured):
        mine, other = fastest(at(measured, key, kind=kind)), fastest(r for r in at(measured, key) if r["kind"] in others)
        if mine and other:
            gains.setdefault(key[2], []).append(other["min_ms"] / mine["min_ms"])
    return gains


def show_models(records, cases, cortex):
    print_heading("other models against PyTorch, all computing input projections: ms least / median, threads")
    show_peers(records, "models", "espalier inputs", {"torch": "more than 1 everywhere"})


def show_memory(records, cases, cortex):
    """A column for each kind of process, with its number of threads where there are several."""
    measured = chosen(records, "memory")
    columns = sorted({(r["kind"], r["threads"]) for r in measured}, key=lambda column: ("espalier" not in column[0], column))
    print_heading("peak resident memory beyond the process with its libraries, after all minibatches (after binding), MiB")
    rows = []
    for case, hidden in dict.fromkeys((r["case"], r["hidden"]) for r in measured):
        of = {(r["kind"], r["threads"]): r for r in measured if (r["case"], r["hidden"]) == (case, hidden)}
        weights = next(iter(of.values()))["weights"]
        rows.append([case, hidden, mebibytes(weights)] + [memory_cell(of.get(column)) for column in columns])
    starts = [statistics.median(r["start"] for r in measured if (r["kind"], r["threads"]) == column) for column in columns]
    rows.append(["the process with its libraries", "", "", *map(mebibytes, starts)])
    print_table(["case", "hidden", "weights", *(f"{kind}, {threads_word(threads)}" for kind, threads in columns)], rows)


def memory_cell(r):
    return f"{mebibytes(r['peak'] - r['start'])} ({mebibytes(r['bound'] - r['start'])})" if r else ""


def mebibytes(size):
    return f"{size / (1 << 20):.1f}"


def show_cortex(records, cases, cortex):
    names = {row[5]: row[0] for row in cases}
    here = machines(records)
    print_heading("against Cortex: its figures are from another machine, ms one / two threads")
    print("its machine: 215 GFLOP/s a core; GB/s from 32 KiB: 350, 1 MiB: 175, 1.5 MiB: 102, 8 MiB: 29, 512 MiB: 16")
    print(f"{'':<20}{'hidden':>7}{'batch':>6}{'Cortex':>18}{'espalier':>18}{'ratio':>16}{'per GFLOP/s':>18}")
    ratios, scaled = [], []
    for model, hidden, batch, *theirs in cortex:
        line, found = f"{model:<20}{hidden:>7}{batch:>6}{' / '.join(theirs):>18}", []
        for threads, ms in ((threads, float(ms)) for threads, ms in zip((1, 2), theirs) if ms != "-"):
            for r in at(chosen(records, "floor"), (names.get(model), int(hidden), int(batch)), threads=threads):
                found.append((r["min_ms"], ms / r["min_ms"], ms / r["min_ms"] * 215 / here[threads]["gflops"]))
        if not found:
            continue
        print(line + f"{' / '.join(f'{f[0]:.4f}' for f in found):>18}{' / '.join(f'{f[1]:.2f}' for f in found):>16}"
              f"{' / '.join(f'{f[2]:.2f}' for f in found):>18}")
        ratios.append(found[-1][1])
        scaled.append(found[-1][2])
    if ratios:
        print(f"two threads, or one where they had one: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f} (wanted on one machine: 1.4, and "
              f"above 1); times what the machines' peaks differ by: {geometric_mean(scaled):.2f}, least {min(scaled):.2f}")


def show_hand(records, cases, cortex):
    print_heading("N-ary TreeLSTM against kernels written by hand: ms least")
    rows = chosen(records, "hand")
    print_table(["hidden", "batch", "threads", "vectors of bits", "by hand", "Espalier", "ratio"],
                [[r["hidden"], r["batch"], r["threads"], r["bits"], number_text(r["hand_ms"]), number_text(r["min_ms"]), f"{r['min_ms'] / r['hand_ms']:.3f}"]
                 for r in rows])
    if rows:
        print(f"at most {max(r['min_ms'] / r['hand_ms'] for r in rows):.3f} (wanted: 1.05)")


def show_start(records, cases, cortex):
    print_heading("processes that run one sentence: ms, medians; of first results also the least")
    rows = {r["cache"]: r for r in chosen(records, "start")}
    for cache, r in rows.items():
        print(f"{cache:<6}" + ", ".join(f"{name} {ms:.3f}" for name, ms in r.items() if isinstance(ms, float)))
    if {"cold", "warm", "none"} <= set(rows):
        for cache, wanted in (("cold", 80), ("warm", 2)):
            print(f"{cache}: first result {rows[cache]['first result'] - rows['none']['first result']:.2f} ms beyond a process that does nothing, "
                  f"least {rows[cache]['least'] - rows['none']['least']:.2f} (wanted: {wanted})")


def show_batches(records, cases, cortex):
    print_heading("by the size of the minibatch: us a structure, least")
    for name in dict.fromkeys((r["case"], r["hidden"], r["threads"]) for r in chosen(records, "batches")):
        rows = [r for r in chosen(records, "batches") if (r["case"], r["hidden"], r["threads"]) == name]
        print(f"{name[0]:<20}{name[1]:>5} x{name[2]}: " + ", ".join(f"{r['batch']}: {1000 * r['min_ms'] / r['batch']:.1f}" for r in rows))


def show_nodes(records, cases, cortex):
    print_heading("by the number of nodes: ns a node, least")
    for threads in sorted({r["threads"] for r in chosen(records, "nodes")}):
        rows = chosen(records, "nodes", threads=threads)
        print(f"{threads} thread{'s' * (threads > 1)}: "
              + ", ".join(f"{r['nodes']:.0f}: {1e6 * r['min_ms'] / r['nodes']:.1f}" for r in rows))
        held = [f"{r['nodes']:.0f}: {r['memory_bytes'] / r['nodes']:.0f}" for r in rows if "memory_bytes" in r]
        if held:
            print("  bytes held a node: " + ", ".join(held))
        beyond = [r["min_ms"] / r["nodes"] for r in rows if r["nodes"] > 2e6]
        if beyond:
            print(f"  from three million nodes on: {100 * (max(beyond) / min(beyond) - 1):.0f} % apart (wanted: 20 at most)")


def show_load(records, cases, cortex):
    records = chosen(records, "load")
    for key in dict.fromkeys((r["case"], r["hidden"]) for r in records):
        print_heading(f"{key[0]}, hidden {key[1]}: random arrivals at a window batcher, latencies in milliseconds: median, p99, p99.9")
        rows = {}
        for r in records:
            if (r["case"], r["hidden"]) == key:
                start = (r["kind"], threads_text(r), f"{r['window_ms']:g}", f"{r['capacity']:.0f}", f"{r['lone_ms']:.2f}", f"{r['good']:.0f}")
                rows.setdefault(start, []).append(", ".join(number_text(r[name]) for name in ("p50_ms", "p99_ms", "p999_ms")))
        loads = list(dict.fromkeys(r["load"] for r in records))
        print_table(["server", "threads", "window, ms", "capacity, 1/s", "alone, ms", "good, 1/s", *(f"{load:.0%}" for load in loads)],
                    [[*start, *cells] for start, cells in rows.items()])


SHOW = {"floor": show_floor, "linearizer": show_phases, "summary": show_summary, "torch": show_torch, "rnn": show_rnn, "precisions": show_precisions,
        "models": show_models, "memory": show_memory, "cortex": show_cortex, "backends": show_backends, "hand": show_hand, "start": show_start, "batches": show_batches, "nodes": show_nodes,
        "load": show_load}


def show(records, parts, cases, cortex):
    if chosen(records, "machine") or chosen(records, "processor"):
        show_machine(records)
    for part in parts:
        if chosen(records, part) or (part == "cortex" and chosen(records, "floor")):
            SHOW[part](records, cases, cortex)
