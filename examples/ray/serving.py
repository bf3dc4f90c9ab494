# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Serves a model by two replicas on a local Ray cluster, sends many requests at once and one over HTTP, and compares every
answer with a run in this process, bit by bit.  If asked to, kills a replica or its node while requests are under way.

    python serving.py --requests 1000 --kill node
"""
import argparse
import asyncio
import json
import logging
import threading
import time
import urllib.request
from pathlib import Path

from local_cluster import local_cluster

import numpy as np
import ray
from ray import serve

import espalier
import espalier.ray

MODEL = Path(__file__).parents[1] / "treelstm"
REPLICAS = 2


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--trees", type=Path, default=MODEL / "sentences.ptb", help="a bracketed tree a line")
    parser.add_argument("--kill", choices=["replica", "node"], help="what is killed when a quarter of the answers have come")
    return parser.parse_args()


class Attempts(logging.Handler):
    """Counts what espalier.ray.submit logs: attempts that failed as a replica died."""

    failed = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.failed += 1


async def ask(handle, trees: list[str], requests: int, kill) -> tuple[list[np.ndarray | None], dict[str, float]]:
    """Submits all requests at once.  The output of each, None where none came, and seconds until what was killed was, and until
    the last answer.  `kill` is called when a quarter of the answers have come; all others are under way or wait."""
    found: list[np.ndarray | None] = [None] * requests
    times = {}
    begin = time.perf_counter()

    async def ask_one(i: int) -> None:
        found[i] = (await espalier.ray.submit(handle, trees[i % len(trees)]))["sentiment"]
        if kill and "killed" not in times and sum(answer is not None for answer in found) >= requests / 4:
            times["killed"] = time.perf_counter() - begin
            threading.Thread(target=kill).start()

    failures = [each for each in await asyncio.gather(*map(ask_one, range(requests)), return_exceptions=True) if each]
    times["all"] = time.perf_counter() - begin
    for failure in failures[:3]:
        print("lost:", repr(failure))
    return found, times


def kill_replica() -> None:
    """Ends the process of one replica, as a fault in it would."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    replica = next(each for each in actors if each["name"].startswith("SERVE_REPLICA::"))
    ray.kill(ray.get_actor(replica["name"], replica["namespace"]))


def post(text: str) -> dict:
    with urllib.request.urlopen("http://127.0.0.1:8000/", text.encode(), timeout=30) as answer:
        return json.load(answer)


def count_differences(answers: list[np.ndarray | None], expected: np.ndarray) -> int:
    return sum(each is not None and each.tobytes() != expected[i % len(expected)].tobytes() for i, each in enumerate(answers))


def main() -> None:
    arguments = parse_arguments()
    attempts = Attempts()
    logging.getLogger("espalier.ray").addHandler(attempts)
    logging.getLogger("espalier.ray").setLevel(logging.INFO)
    trees = arguments.trees.read_text().splitlines()
    weights, vocab = MODEL / "sst-treelstm-small.safetensors", MODEL / "sst-vocab.txt"
    model = espalier.load(MODEL / "treelstm.ra", weights, vocab=vocab, continuous=True)
    expected = model(trees)["sentiment"]
    with local_cluster(REPLICAS) as (cluster, workers):
        kills = {"replica": kill_replica, "node": lambda: cluster.remove_node(workers[0], allow_graceful=False)}
        serve.start(http_options={"host": "127.0.0.1", "location": "HeadOnly"})
        try:
            application = espalier.ray.deployment(
                espalier.ray.share(model), num_replicas=REPLICAS, ray_actor_options={"num_cpus": 1, "resources": {"compute": 1}}
            )
            handle = serve.run(application)
            asyncio.run(ask(handle, trees, 100, None))
            answers, times = asyncio.run(ask(handle, trees, arguments.requests, kills.get(arguments.kill)))
            over_http = post("\n".join(trees))
        finally:
            serve.shutdown()
    lost = sum(answer is None for answer in answers)
    differ = count_differences(answers, expected)
    differ += np.array(over_http["sentiment"], np.float32).tobytes() != expected.tobytes()
    report = {"requests": len(answers), "lost": lost, "differ": differ, "asked_again": attempts.failed}
    rate = round(len(answers) / times["all"])
    print(json.dumps({**report, **{f"{name}_s": round(t, 2) for name, t in times.items()}, "requests_per_s": rate}))
    raise SystemExit(lost > 0 or differ > 0)


if __name__ == "__main__":
    main()
