# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Serves a model by two replicas on a local Ray cluster, sends many requests at once and one over HTTP, and compares every
answer with a run in this process, bit by bit.

    python serving.py --requests 1000
"""
import argparse
import asyncio
import json
import time
import urllib.request
from pathlib import Path

from local_cluster import local_cluster

import numpy as np
from ray import serve

import espalier
import espalier.ray

MODEL = Path(__file__).parents[1] / "treelstm"


async def ask(handle, trees: list[str], requests: int) -> list[np.ndarray]:
    answers = [handle.run.remote(trees[i % len(trees)]) for i in range(requests)]
    return [(await answer)["sentiment"] for answer in answers]


def post(text: str) -> dict:
    with urllib.request.urlopen("http://127.0.0.1:8000/", text.encode(), timeout=30) as answer:
        return json.load(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    arguments = parser.parse_args()
    trees = (MODEL / "sentences.ptb").read_text().splitlines()
    weights, vocab = MODEL / "sst-treelstm-small.safetensors", MODEL / "sst-vocab.txt"
    model = espalier.load(MODEL / "treelstm.ra", weights, vocab=vocab, continuous=True)
    expected = model(trees)["sentiment"]
    with local_cluster(1, processors=2) as _:
        serve.start(http_options={"host": "127.0.0.1", "location": "HeadOnly"})
        try:
            handle = serve.run(espalier.ray.deployment(espalier.ray.share(model), num_replicas=2))
            asyncio.run(ask(handle, trees, 100))
            begin = time.perf_counter()
            answers = asyncio.run(ask(handle, trees, arguments.requests))
            seconds = time.perf_counter() - begin
            over_http = post("\n".join(trees))
        finally:
            serve.shutdown()
    differ = sum(answer.tobytes() != expected[i % len(trees)].tobytes() for i, answer in enumerate(answers))
    differ += np.array(over_http["sentiment"], np.float32).tobytes() != expected.tobytes()
    print(json.dumps({"requests": len(answers), "differ": differ, "requests_per_s": round(len(answers) / seconds)}))
    raise SystemExit(differ > 0)


if __name__ == "__main__":
    main()
