#!/usr/bin/env python3
"""Our library and its peers side by side in one run, minibatch by minibatch in turn.

  compare.py [--batches 1,10] MODEL.ra WEIGHTS VOCAB TREES

Every contestant is started once and then asked, by a line "run FIRST COUNT REPEATS", for the times in microseconds of
linearizing and running a minibatch; asking them in turn lets a slow moment of the machine hit all alike. Of a minibatch
counts the minimum (the machine undisturbed) and the median of its times. The table gives the mean of both over the
minibatches, and the geometric mean over the minibatches of how many times longer a peer took, by minima.
"""
import argparse
import math
import os
import shlex
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = os.path.join(TOP, "bench", "peers", "treelstm_torch.py")
OURS = "espalier"


class Contestant:
    """A process that answers "run" lines."""

    def __init__(self, name, command, stderr=None):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
                                        bufsize=1)

    def times(self, first, count, repeats):
        self.process.stdin.write(f"run {first} {count} {repeats}\n")
        answer = self.process.stdout.readline()
        try:
            times = [float(word) for word in answer.split()]
        except ValueError:
            times = []
        if len(times) != repeats:
            sys.exit(f"{self.name}: {repeats} times are wanted, not {answer.strip()[:200] or 'the end of the output'!r}")
        return times

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def count_trees(path):
    """One a line, as the peer reads them."""
    with open(path, "rb") as file:
        return sum(1 for line in file if line.strip())


def measure(contestants, batch, trees, options):
    """Contestant -> [(minimum, median) of each minibatch], asked in turn, in the other direction every second time."""
    firsts = range(0, trees - batch + 1, max(batch, (trees - batch) // options.minibatches))
    results = {contestant.name: [] for contestant in contestants}
    for first in list(firsts)[:options.minibatches]:
        samples = {contestant.name: [] for contestant in contestants}
        for turn in range(options.turns):
            for contestant in contestants[::-1 if turn % 2 else 1]:
                samples[contestant.name] += contestant.times(first, batch, options.repeats)
        for name, times in samples.items():
            results[name].append((min(times), statistics.median(times)))
    return results


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def print_table(batch, results, reference):
    print(f"batch {batch}, {len(results[reference])} minibatches; ms")
    print(f"  {'':<18}{'minimum':>10}{'median':>10}{'ratio':>8}{'least':>8}{'most':>8}   to {reference}")
    for name, pairs in results.items():
        ratios = [mine[0] / theirs[0] for mine, theirs in zip(pairs, results[reference])]
        minimum, median = (statistics.fmean(column) / 1000 for column in zip(*pairs))
        print(f"  {name:<18}{minimum:10.3f}{median:10.3f}{geometric_mean(ratios):8.2f}{min(ratios):8.2f}{max(ratios):8.2f}")
    print(flush=True)


def print_means(all_results, reference):
    """Over all batch sizes, each weighing the same."""
    for name in all_results[0]:
        if name != reference:
            means = [geometric_mean(mine[0] / theirs[0] for mine, theirs in zip(results[name], results[reference]))
                     for results in all_results]
            print(f"geometric mean {name} / {reference}: {geometric_mean(means):.2f}")


def contestants_of(options):
    files = [options.weights, options.vocab, options.trees]
    ours = shlex.split(options.ours)
    commands = {}
    there = os.access(ours[0], os.X_OK)
    if there:
        build = os.path.dirname(os.path.dirname(os.path.abspath(ours[0])))
        os.environ.setdefault("ESPALIER_BACKEND_PATH", os.path.join(build, ".libs"))
    else:
        print(f"{ours[0]} is not there (make bench-programs): the peers alone", file=sys.stderr)
    for i, threads in enumerate(options.threads.split(",")):
        suffix = f" x{threads}" if i else ""
        if there:
            commands[OURS + suffix] = ours + [options.model] + files + ["--threads", threads]
        for variant in filter(None, options.peers.split(",")):
            commands[f"torch {variant}{suffix}"] = [PEER, *files, "--serve", "--variant", variant, "--threads", threads]
    return [Contestant(name, command) for name, command in commands.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "weights", "vocab", "trees"):
        parser.add_argument(name)
    parser.add_argument("--batches", default="1,10", help="trees a minibatch (%(default)s)")
    parser.add_argument("--minibatches", type=int, default=30, help="of each size, spread over the file (%(default)s)")
    parser.add_argument("--turns", type=int, default=4, help="times that all are asked in turn (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="runs a turn (%(default)s)")
    parser.add_argument("--threads", default="1", help="of each contestant; 1,2: each of them both ways (%(default)s)")
    parser.add_argument("--peers", default="level,script", help="variants of the peer (%(default)s)")
    parser.add_argument("--ours", default=os.path.join(TOP, "build", "bench", "serve"), help="(%(default)s)")
    options = parser.parse_args()

    trees = count_trees(options.trees)
    batches = [int(batch) for batch in options.batches.split(",")]
    if not all(0 < batch <= trees for batch in batches):
        parser.error(f"{options.trees} has {trees} trees: no batches of {options.batches}")
    contestants = contestants_of(options)
    all_results = []
    for batch in batches:
        all_results.append(measure(contestants, batch, trees, options))
        print_table(batch, all_results[-1], contestants[0].name)
    print_means(all_results, contestants[0].name)
    for contestant in contestants:
        contestant.close()


if __name__ == "__main__":
    main()
