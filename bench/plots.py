# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Plots of bench.py's records by gnuplot, as SVG and PNG; without gnuplot there are none."""
import os
import shutil
import subprocess
import sys

import tables

STYLE = """set encoding utf8
set border 3 back
set grid ytics lc rgb '#dddddd'
set key top left
set tics nomirror out
"""
TERMINALS = {"svg": "svg size 900,480 dynamic font 'sans,12' background rgb 'white'", "png": "pngcairo size 900,480 font 'sans,10'"}


def block(name, rows):
    return f"${name} << END\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows) + "END\n"


def quoted(text):
    return '"' + text.replace('"', "'") + '"'


def lines(series, x, y, logarithmic):
    """A plot of lines: series is [(title, [(x, y)])]."""
    script = f"set xlabel {quoted(x)}\nset ylabel {quoted(y)}\nset logscale {logarithmic}\n"
    for i, (_, points) in enumerate(series):
        script += block(f"s{i}", points)
    return script + "plot " + ", ".join(f"$s{i} using 1:2 with linespoints lw 2 pt 7 ps 0.6 title {quoted(title)}"
                                        for i, (title, _) in enumerate(series)) + "\n"


def plot_machine(records):
    series = [(f"{threads} reading at once", [(point["bytes"] / 1024, point["gbs"]) for point in m["read"]])
              for threads, m in sorted(tables.machines(records).items())]
    return series and lines(series, "working set of a core, KiB", "GB/s a core", "xy")


def plot_floor(records):
    measured = tables.chosen(records, "floor", threads=2)
    if not measured:
        return None
    rows = [(quoted(f"{r['case']} {r['hidden']}, {r['batch']}"), tables.share(r)) for r in measured]
    return (block("s", rows) + "set yrange [0:]\nset ylabel 'floor / time, two threads'\nset xtics rotate by -60 font ',8'\n"
            "unset key\nset style fill solid 0.8\nset boxwidth 0.7\nset arrow from graph 0, first 0.8 to graph 1, first 0.8 nohead dt 2\n"
            "plot $s using 0:2:xtic(1) with boxes lc rgb '#4477aa'\n")


def plot_batches(records):
    measured = tables.chosen(records, "batches")
    names = dict.fromkeys((r["case"], r["hidden"], r["threads"]) for r in measured)
    series = [(f"{case} {hidden}, {threads} thread{'s' * (threads > 1)}",
               [(r["batch"], 1000 * r["min_ms"] / r["batch"]) for r in measured
                if (r["case"], r["hidden"], r["threads"]) == (case, hidden, threads)]) for case, hidden, threads in names]
    return series and lines(series, "trees of a minibatch", "us a tree", "xy")


def plot_nodes(records):
    measured = tables.chosen(records, "nodes")
    series = [(f"{threads} thread{'s' * (threads > 1)}",
               [(r["nodes"], 1e6 * r["min_ms"] / r["nodes"]) for r in measured if r["threads"] == threads])
              for threads in sorted({r["threads"] for r in measured})]
    return series and lines(series, "nodes", "ns a node", "x") .replace("plot ", "set yrange [0:]\nplot ")


def plot_ratios(records):
    """Of peers: how many times longer the best of their numbers of threads takes."""
    rows, kinds = [], []
    for part, mine in (("torch", "espalier inputs"), ("rnn", "espalier")):
        measured = tables.chosen(records, part)
        for key in tables.keys_of(measured):
            ours = tables.fastest(tables.at(measured, key, kind=mine))["min_ms"]
            for kind in dict.fromkeys(r["kind"] for r in measured if not r["kind"].startswith("espalier")):
                rows.append((f"{key[0]} {key[1]}, {key[2]}", kind, tables.fastest(tables.at(measured, key, kind=kind))["min_ms"] / ours))
    if not rows:
        return None
    kinds = list(dict.fromkeys(row[1] for row in rows))
    cases = list(dict.fromkeys(row[0] for row in rows))
    value = {(row[0], row[1]): row[2] for row in rows}
    data = block("s", [(quoted(case), *(value.get((case, kind), "NaN") for kind in kinds)) for case in cases])
    return (data + "set logscale y\nset ylabel 'time / time of espalier'\nset xtics rotate by -60 font ',8'\n"
            "set datafile missing 'NaN'\nset arrow from graph 0, first 1 to graph 1, first 1 nohead dt 2\nplot "
            + ", ".join(f"$s using 0:{i + 2}:xtic(1) with points pt 7 ps 0.9 title {quoted(kind)}" for i, kind in enumerate(kinds)) + "\n")


PLOTS = {"machine": plot_machine, "floor": plot_floor, "batches": plot_batches, "nodes": plot_nodes, "peers": plot_ratios}


def draw(records, folder):
    if not shutil.which("gnuplot"):
        print("no plots: package gnuplot-nox", file=sys.stderr)
        return
    for name, plot in PLOTS.items():
        script = plot(records)
        for ending, terminal in TERMINALS.items() if script else ():
            path = os.path.join(folder, f"{name}.{ending}")
            subprocess.run(["gnuplot"], input=f"set terminal {terminal}\nset output '{path}'\n{STYLE}{script}", text=True,
                           check=False)
