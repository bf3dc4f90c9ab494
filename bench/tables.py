# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The tables of bench.py, each from the records of its part, with the part's summary figure below."""
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
    print_heading("the machine: what a core does, all of so many computing or reading at once")
    for threads, m in sorted(machines(records).items()):
        print(f"{threads} thread{'s' if threads > 1 else ''}, {m['vector']}: {m['gflops']:.1f} GFLOP/s, barrier "
              f"{m['barrier_us']:.2f} us; GB/s from "
              + ", ".join(f"{size_text(point['bytes'])}: {point['gbs']:.0f}" for point in m["read"]))
    for text in dict.fromkeys(r["text"] for r in chosen(records, "note")):
        print(f"({text})")


def undisturbed(r):
    """Milliseconds that floors are compared with."""
    return r.get("quiet_ms", r["min_ms"])


def show_floor(records, cases, cortex):
    measured = chosen(records, "floor", kind="espalier")
    threads = sorted({r["threads"] for r in measured})
    print_heading("floor / time: ms undisturbed (least, median of a run), floor / undisturbed")
    print(f"{'':<24}{'hidden':>7}{'batch':>6}" + "".join(f"{f'{t} thread' + 's' * (t > 1):>30}{'floor':>9}{'share':>7}"
                                                         for t in threads) + f"{'times faster':>14}")
    for key in keys_of(measured):
        line = f"{key[0]:<24}{key[1]:>7}{key[2]:>6}"
        for t in threads:
            for r in at(measured, key, threads=t):
                time = f"{undisturbed(r):.4f} ({r['min_ms']:.4f}, {r['median_ms']:.4f})"
                line += f"{time:>30}{r['floor_ms']:>9.4f}{share(r):>7.2f}"
        both = [at(measured, key, threads=t) for t in (1, 2)]
        print(line + (f"{gain(*both):>14.2f}" if all(both) else ""))
    for t in threads:
        show_share([r for r in measured if r["threads"] == t], t)
    show_threads(measured)
    show_linearizer(measured, cases)


def share(r):
    return r["floor_ms"] / undisturbed(r)


def gain(one, two):
    return undisturbed(one[0]) / undisturbed(two[0])


def show_share(rows, threads):
    large = [r for r in rows if r["floor_ms"] >= 0.020]
    print(f"{threads} thread{'s' * (threads > 1)}: geometric mean of floor / time, each at most 1: "
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


def show_peers(records, part, kind, wanted):
    """Compares Espalier with the fastest peer, each with its best number of threads."""
    measured = chosen(records, part)
    peers = list(dict.fromkeys(r["kind"] for r in measured if not r["kind"].startswith("espalier")))
    print(f"{'':<16}{'hidden':>7}{'batch':>6}{'espalier':>20}" + "".join(f"{peer:>28}" for peer in peers) + f"{'ratio':>8}{'medians':>9}")
    for key in keys_of(measured):
        mine = fastest(at(measured, key, kind=kind))
        others = [fastest(at(measured, key, kind=peer)) for peer in peers]
        line = f"{key[0]:<16}{key[1]:>7}{key[2]:>6}" + format_cell(mine, 20) + "".join(format_cell(other, 28) for other in others)
        if any(others):
            median = min(other["median_ms"] for other in others if other)
            line += f"{fastest(filter(None, others))['min_ms'] / mine['min_ms']:>8.2f}{median / mine['median_ms']:>9.2f}"
        print(line)
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


def format_cell(r, width):
    text = f"{r['min_ms']:.3f} ({r['median_ms']:.3f}) {threads_text(r)}" if r else "-"
    return f"{text:>{width}}"


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
    for r in chosen(records, "processor"):
        print(f"Least ms of a run, {r['name']}, {r['cores']} processors; in brackets the variant, threads, how they wait:\n")
    print("| model, hidden, batch | " + " | ".join(name for name, _ in columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for key in keys_of(measured):
        mine = fastest(at(measured, key, kind="espalier inputs") or at(measured, key, kind="espalier"))
        cells = [summary_cell(fastest(r for r in at(measured, key) if re.fullmatch(pattern, r["kind"])), pattern, mine)
                 for _, pattern in columns]
        print("| " + " | ".join((", ".join(map(str, key)), *cells)) + " |")


def show_torch(records, cases, cortex):
    print_heading("tree models against PyTorch and DyNet, all computing input projections: ms least (median) x threads")
    show_peers(records, "torch", "espalier inputs", {"torch": "4", "dynet": "more"})


def show_rnn(records, cases, cortex):
    print_heading("LSTM and GRU (reset after the product), 100 steps, against libraries: ms least (median) x threads")
    show_peers(records, "rnn", "espalier", {"": "1.3, nowhere below 0.95"})


def show_cortex(records, cases, cortex):
    names = {row[5]: row[0] for row in cases}
    here = machines(records)
    print_heading("tree models against Cortex: its figures are from another machine, ms one / two threads")
    print("its machine: 215 GFLOP/s a core; GB/s from 32 KiB: 350, 1 MiB: 175, 1.5 MiB: 102, 8 MiB: 29, 512 MiB: 16")
    print(f"{'':<20}{'hidden':>7}{'batch':>6}{'Cortex':>18}{'espalier':>18}{'ratio':>16}{'per GFLOP/s':>18}")
    ratios, scaled = [], []
    for model, hidden, batch, *theirs in cortex:
        line, found = f"{model:<20}{hidden:>7}{batch:>6}{' / '.join(theirs):>18}", []
        for threads, ms in zip((1, 2), map(float, theirs)):
            for r in at(chosen(records, "floor"), (names.get(model), int(hidden), int(batch)), threads=threads):
                found.append((r["min_ms"], ms / r["min_ms"], ms / r["min_ms"] * 215 / here[threads]["gflops"]))
        if not found:
            continue
        print(line + f"{' / '.join(f'{f[0]:.4f}' for f in found):>18}{' / '.join(f'{f[1]:.2f}' for f in found):>16}"
              f"{' / '.join(f'{f[2]:.2f}' for f in found):>18}")
        ratios.append(found[-1][1])
        scaled.append(found[-1][2])
    if ratios:
        print(f"two threads: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f} (wanted on one machine: 1.4, and "
              f"above 1); times what the machines' peaks differ by: {geometric_mean(scaled):.2f}, least {min(scaled):.2f}")


def show_hand(records, cases, cortex):
    print_heading("N-ary TreeLSTM against kernels written by hand: ms least")
    rows = chosen(records, "hand")
    for r in rows:
        print(f"hidden {r['hidden']:>4} batch {r['batch']:>3} threads {r['threads']}, vectors of {r['bits']} bits: by hand {r['hand_ms']:8.4f}, espalier "
              f"{r['min_ms']:8.4f}, {r['min_ms'] / r['hand_ms']:.3f} of it")
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


SHOW = {"floor": show_floor, "summary": show_summary, "torch": show_torch, "rnn": show_rnn, "cortex": show_cortex, "backends": show_backends,
        "hand": show_hand,
        "start": show_start, "batches": show_batches, "nodes": show_nodes}


def show(records, parts, cases, cortex):
    if chosen(records, "machine"):
        show_machine(records)
    for part in parts:
        if chosen(records, part) or (part == "cortex" and chosen(records, "floor")):
            SHOW[part](records, cases, cortex)
