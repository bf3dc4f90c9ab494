#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""load_plot.py FILE.tsv[=TITLE]... -o FILE.svg: draws the median and the 99th percentile of latency over the rate of requests, from records of load, a
panel for each file, with gnuplot."""
import argparse
import csv
import subprocess

import plots

COLUMNS, PANEL_HEIGHT = 2, 400


def records_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def series_of(records):
    """[(title, [(rate, milliseconds)])] of the median and the 99th percentile, by server."""
    points = [r for r in records if r["what"] == "open"]
    return [(f"{server}, {name}", sorted((float(r["rate"]), float(r[column]) * 1e-3) for r in points if r["server"] == server))
            for server in dict.fromkeys(r["server"] for r in points) for name, column in (("median", "p50_us"), ("99th percentile", "p99_us"))]


def panel_of(number, title, series):
    """A panel: medians are drawn through, 99th percentiles broken."""
    names = [f"p{number}s{i}" for i in range(len(series))]
    script = "".join(plots.block(name, points) for name, (_, points) in zip(names, series)) + f"set title {plots.quoted(title)} font ',15'\n"
    return script + "plot " + ", ".join(
        f"${names[i]} using 1:2 with linespoints lw 2 dt {1 + i % 2} pt {7 - 2 * (i % 2)} ps 0.5 {plots.colour(i // 2)} title {plots.quoted(name)}"
        for i, (name, _) in enumerate(series)) + "\n"


def script_of(panels):
    rows = -(-len(panels) // COLUMNS)
    script = (f"set multiplot layout {rows},{min(COLUMNS, len(panels))}\nset xlabel 'requests a second'\nset ylabel 'latency [ms]'\nset logscale y\n"
              "set xrange [0:*]\nset key below font ',10' samplen 2 maxrows 2\n")
    return script + "".join(panel_of(i, title, series) for i, (title, series) in enumerate(panels)) + "unset multiplot\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="+", help="a file of records, and the title of its panel behind =")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    panels = []
    for argument in options.records:
        path, _, title = argument.partition("=")
        panels.append((title or path, series_of(records_of(path))))
    rows = -(-len(panels) // COLUMNS)
    terminal = plots.TERMINALS["svg"].format(plots.WIDTH * min(COLUMNS, len(panels)) * 2 // 3, PANEL_HEIGHT * rows)
    subprocess.run(["gnuplot"], text=True, check=True, input=f"set terminal {terminal}\nset output '{options.output}'\n{plots.STYLE}" + script_of(panels))


if __name__ == "__main__":
    main()
