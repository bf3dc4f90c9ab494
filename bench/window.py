# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Open loads on a program that only runs minibatches: a window batcher before it (the part load of bench.py).

Requests arrive at random times (Poisson), whether or not earlier ones were answered, and a latency counts from the arrival, so
a slow server is not spared the requests that it made wait. Request k is the k-th structure, and the waiting ones are always
consecutive: a minibatch is a range of them. It begins when the oldest has waited as long as the window, or when it is full.
"""
import math
import random
import time

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the capacity
IN_FLIGHT = 32  # of the closed loop; also the most requests of a minibatch
WANTED = 5  # a latency is good while its 99th percentile is at most so many times that of a lone request


def arrivals_of(rate, seconds, seed):
    """Times of arrivals [s], from 0."""
    draw = random.Random(seed)
    times, at = [], draw.expovariate(rate)
    while at < seconds:
        times.append(at)
        at += draw.expovariate(rate)
    return times


def next_minibatch(arrivals, served, now, window, most):
    """(requests that begin now, time of the next look): 0 requests while the oldest may wait."""
    if served == len(arrivals):
        return 0, math.inf
    due = served
    while due < len(arrivals) and due - served < most and arrivals[due] <= now:
        due += 1
    full, begin = due - served == most, arrivals[served] + window
    if due > served and (full or begin <= now):
        return due - served, now
    return 0, max(begin, now) if due > served else arrivals[served]


def percentile(values, share):
    """The least value that so large a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def wait_until(at):
    """Sleeps most of the time, then looks at the clock: timers are late."""
    left = at - time.perf_counter()
    if left > 0.0005:
        time.sleep(left - 0.0003)
    while time.perf_counter() < at:
        pass


def latencies_of(run, arrivals, window, most=IN_FLIGHT):
    """Seconds from the arrival of each request to the end of its minibatch. run(first, count): runs a minibatch."""
    found, start = [], time.perf_counter()
    while len(found) < len(arrivals):
        count, then = next_minibatch(arrivals, len(found), time.perf_counter() - start, window, most)
        if not count:
            wait_until(start + then)
            continue
        run(len(found), count)
        end = time.perf_counter() - start
        found += [end - at for at in arrivals[len(found):len(found) + count]]
    return found


def closed_loop(run, in_flight, seconds):
    """Requests a second while so many are always waiting."""
    served, start = 0, time.perf_counter()
    while True:
        run(served, in_flight)
        served += in_flight
        took = time.perf_counter() - start
        if took > seconds:
            return served / took


def lone_latency(run, count):
    """The median of so many requests that have no company [s]."""
    times = []
    for i in range(count):
        start = time.perf_counter()
        run(i, 1)
        times.append(time.perf_counter() - start)
    return percentile(times, 0.5)


def good_rate(run, window, capacity, lone, seconds, steps=5):
    """The highest rate, by bisection, at which the 99th percentile is at most WANTED times the lone latency; 0 = not even at a
    hundredth of the capacity."""
    low, high = capacity / 100, capacity
    if percentile(latencies_of(run, arrivals_of(low, 2 * seconds, 1), window), 0.99) > WANTED * lone:
        return 0
    for step in range(steps):
        rate = (low + high) / 2
        good = percentile(latencies_of(run, arrivals_of(rate, seconds, step), window), 0.99) <= WANTED * lone
        low, high = (rate, high) if good else (low, rate)
    return low
