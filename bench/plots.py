# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Draws bench.py's records with gnuplot, as SVG and PNG; does nothing without gnuplot."""
import os
import shutil
import subprocess
import sys

import tables

STYLE = """set encoding utf8
set border 3 back
set grid lc rgb '#dddddd'
set key top left
set tics nomirror out
"""
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442")  # Okabe and Ito 2008
TERMINALS = {"svg": "svg size {0},{1} dynamic font 'Helvetica,13' background rgb 'white'", "png": "pngcairo size {0},{1} font 'sans,11'"}
WIDTH, HEIGHT = 900, 480
SHARE_WANTED = 0.80


class Plot:
    """A gnuplot script and the height of its picture."""

    def __init__(self, title, script, height=HEIGHT):
        self.script, self.height = f"set title {quoted(title)} font ',15'\n{script}\n", height


def block(name, rows):
    return f"${name} << END\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows) + "END\n"


def quoted(text):
    return '"' + text.replace('"', "'") + '"'


def threads_text(threads):
    return f"{threads} thread{'s' * (threads > 1)}"


def colour(i):
    return f"lc rgb '{COLOURS[i % len(COLOURS)]}'"


def plot_lines(title, x, y, series, base=2):
    """series is [(title, [(x, y)])]; x is logarithmic to that base, y begins at 0."""
    if not series:
        return None
    script = f"set xlabel {quoted(x)}\nset ylabel {quoted(y)}\nset logscale x {base}\nset yrange [0:*]\nset key outside right top\n"
    for i, (_, points) in enumerate(series):
        script += block(f"s{i}", points)
    return Plot(title, script + "plot " + ", ".join(
        f"$s{i} using 1:2 with linespoints lw 2 pt {5 + i % 10} ps 0.7 {colour(i)} title {quoted(name)}" for i, (name, _) in enumerate(series)))


def rows_frame(rows, x):
    """The frame and height of a plot with a row for each case: names on the left, the first on top."""
    names = ", ".join(f"{quoted(row)} {i}" for i, row in enumerate(rows))
    return (f"set xlabel {quoted(x)}\nset ytics ({names}) font ',11'\nset yrange [{len(rows) - 0.4}:-0.6]\nset grid noytics xtics\n", 110 + 18 * len(rows))


def line_at(x, text):
    """A vertical line to compare results with."""
    return (f"set arrow from first {x}, graph 0 to first {x}, graph 1 nohead dt 2 lw 2 lc rgb '#222222' front\n"
            f"set label {quoted(text)} at first {x}, graph 1 offset 0, 0.6 center font ',11' front\nset title offset 0, 0.8\n")


def name_of(key):
    return f"{key[0]}, {key[1]}, {key[2]}"


def plot_machine(records):
    return plot_lines("What a core reads from a working set of its own", "working set of a core [KiB]", "GB/s a core", [
        (f"{threads} reading at once", [(point["bytes"] / 1024, point["gbs"]) for point in m["read"]])
        for threads, m in sorted(tables.machines(records).items())])


def plot_floor(records):
    measured = tables.chosen(records, "floor", threads=2)
    if not measured:
        return None
    frame, height = rows_frame([name_of((r["case"], r["hidden"], r["batch"])) for r in measured], "floor / time; case, hidden size, minibatch")
    return Plot("How near two threads come to what the machine allows", block("s", [(tables.share(r),) for r in measured]) + frame
                + "unset key\nset xrange [0:1<*]\nset style fill solid 0.9 noborder\n" + line_at(SHARE_WANTED, f"wanted: {SHARE_WANTED:.2f}")
                + f"plot $s using ($1/2):0:($1/2):(0.36) with boxxyerror {colour(0)}", height)


def plot_batches(records):
    measured = tables.chosen(records, "batches")
    names = dict.fromkeys((r["case"], r["hidden"], r["threads"]) for r in measured)
    return plot_lines("Time of a structure by the size of the minibatch", "structures of a minibatch", "least time of a structure [\u00b5s]", [
        (f"{case}, {hidden}, {threads_text(threads)}", [(r["batch"], 1000 * r["min_ms"] / r["batch"]) for r in measured
                                                       if (r["case"], r["hidden"], r["threads"]) == (case, hidden, threads)])
        for case, hidden, threads in names])


def plot_nodes(records):
    measured = tables.chosen(records, "nodes")
    return plot_lines("Time of a node by the number of nodes", "nodes", "least time of a node [ns]", [
        (threads_text(threads), [(r["nodes"], 1e6 * r["min_ms"] / r["nodes"]) for r in measured if r["threads"] == threads])
        for threads in sorted({r["threads"] for r in measured})], base=10)


def ratios_of(records):
    """{case: {peer: its time over Espalier's}}, each with its best number of threads."""
    ratios = {}
    for part, mine in (("torch", "espalier inputs"), ("rnn", "espalier"), ("models", "espalier inputs")):
        measured = tables.chosen(records, part)
        for key in tables.keys_of(measured):
            ours = tables.fastest(tables.at(measured, key, kind=mine))
            for kind in dict.fromkeys(r["kind"] for r in tables.at(measured, key) if not r["kind"].startswith("espalier")):
                theirs = tables.fastest(tables.at(measured, key, kind=kind))
                if ours:
                    ratios.setdefault(name_of(key), {})[kind] = theirs["min_ms"] / ours["min_ms"]
    return ratios


def plot_peers(records):
    """The axis is logarithmic, since ratios span decades."""
    ratios = ratios_of(records)
    if not ratios:
        return None
    kinds = list(dict.fromkeys(kind for row in ratios.values() for kind in row))
    frame, height = rows_frame(list(ratios), "time / time of espalier; case, hidden size, minibatch")
    least = min(min(row.values()) for row in ratios.values())
    script = "".join(block(f"s{i}", [(row[kind], y) for y, row in enumerate(ratios.values()) if kind in row]) for i, kind in enumerate(kinds))
    return Plot("How many times as long others take", script + frame + f"set logscale x\nset format x '%g'\nset xrange [{min(0.5, least / 1.2):.3g}:*]\n"
                "set key outside right top\n" + line_at(1, "as long") + "plot "
                + ", ".join(f"$s{i} using 1:2 with points pt {5 + i % 10} ps 1 {colour(i)} title {quoted(kind)}" for i, kind in enumerate(kinds)), height + 40)


PLOTS = {"machine": plot_machine, "floor": plot_floor, "batches": plot_batches, "nodes": plot_nodes, "peers": plot_peers}


def draw(records, folder):
    if not shutil.which("gnuplot"):
        print("no plots: package gnuplot-nox", file=sys.stderr)
        return
    for name, make in PLOTS.items():
        plot = make(records)
        for ending, terminal in TERMINALS.items() if plot else ():
            path = os.path.join(folder, f"{name}.{ending}")
            size = terminal.format(WIDTH, max(plot.height, 240))
            subprocess.run(["gnuplot"], input=f"set terminal {size}\nset output '{path}'\n{STYLE}{plot.script}", text=True, check=False)
