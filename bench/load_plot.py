#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""load_plot.py FILE.tsv [-t TITLE] -o FILE.svg: draws the 99th percentile of latency over the rate of requests, from records of load, with gnuplot."""
import argparse
import csv
import subprocess

import plots


def series_of(records):
    """[(title, [(rate, milliseconds)])] of the median and the 99th percentile, by server."""
    servers = dict.fromkeys(r["server"] for r in records)
    return [(f"{server}, {name}", sorted((float(r["rate"]), float(r[column]) * 1e-3) for r in records if r["server"] == server and r["what"] == "open"))
            for server in servers for name, column in (("median", "p50_us"), ("99th percentile", "p99_us"))]


def script_of(title, series):
    script = (f"set title {plots.quoted(title)} font ',15'\nset xlabel 'requests a second'\nset ylabel 'latency [ms]'\nset logscale y\n"
              "set xrange [0:*]\nset key outside right top\n")
    for i, (_, points) in enumerate(series):
        script += plots.block(f"s{i}", points)
    return script + "plot " + ", ".join(
        f"$s{i} using 1:2 with linespoints lw 2 dt {2 - i % 2} pt {5 + 2 * (i % 2)} ps 0.7 {plots.colour(i // 2)} title {plots.quoted(name)}"
        for i, (name, _) in enumerate(series)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records")
    parser.add_argument("-t", "--title", default="Latency by rate")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    with open(options.records, encoding="utf-8") as file:
        records = list(csv.DictReader(file, delimiter="\t"))
    terminal = plots.TERMINALS["svg"].format(plots.WIDTH, plots.HEIGHT)
    subprocess.run(["gnuplot"], text=True, check=True, input=f"set terminal {terminal}\nset output '{options.output}'\n{plots.STYLE}"
                   + script_of(options.title, series_of(records)))


if __name__ == "__main__":
    main()
