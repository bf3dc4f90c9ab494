# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Runs a model over a treebank in Parquet on a local Ray cluster, kills a node in the middle if asked to, and compares every
record with a run in this process, bit by bit.

    python batch.py --nodes 2 --kill-after 0.5
"""
import argparse
import json
import tempfile
import threading
import time
from pathlib import Path

from local_cluster import local_cluster

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

import espalier
import espalier.ray

MODEL = Path(__file__).parents[1] / "treelstm"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--trees", type=Path, default=MODEL / "sentences.ptb", help="a bracketed tree a line")
    parser.add_argument("--repeat", type=int, default=100, help="how often each tree is a record")
    parser.add_argument("--blocks", type=int, default=16, help="in how many blocks, each a task, the records are")
    parser.add_argument("--kill-after", type=float, help="kills a node after this share of the records, such as 0.5")
    parser.add_argument("--target", default="native", help="whose code all nodes run: native, avx2, avx512, generic, aarch64")
    return parser.parse_args()


def write_treebank(folder: Path, trees: list[str], repeat: int) -> int:
    records = repeat * len(trees)
    pq.write_table(pa.table({"id": range(records), "structure": repeat * trees}), folder / "trees.parquet")
    return records


def predict(folder: Path, model: ray.ObjectRef, nodes: int, blocks: int) -> ray.data.Dataset:
    return ray.data.read_parquet(str(folder)).repartition(blocks).map_batches(
        espalier.ray.Predictor,
        fn_constructor_kwargs={"model": model, "outputs": ["sentiment"]},
        batch_size=256,
        compute=ray.data.ActorPoolStrategy(size=nodes),
        resources={"compute": 1},
    )


def collect(rows: ray.data.Dataset, records: int, kill_at: float | None, kill) -> tuple[dict[int, np.ndarray], dict]:
    """The output of each record by its id, and seconds until the first and the last came; "rate" is that between them.  When
    `kill_at` records have come, `kill` is called, and the rest must come still."""
    found: dict[int, np.ndarray] = {}
    times = {}
    begin = time.perf_counter()
    for batch in rows.iter_batches(batch_size=None, prefetch_batches=0):
        if "first" not in times:
            times["first"], early = time.perf_counter() - begin, len(batch["id"])
        for i, row in zip(batch["id"].tolist(), batch["sentiment"]):
            assert i not in found, f"record {i} came twice"
            found[i] = row
        if kill_at is not None and "killed" not in times and len(found) >= kill_at:
            times["killed"] = time.perf_counter() - begin
            threading.Thread(target=kill).start()
    times["all"] = time.perf_counter() - begin
    times["rate"] = (len(found) - early) / (times["all"] - times["first"])
    return found, times


def main() -> None:
    arguments = parse_arguments()
    trees = arguments.trees.read_text().splitlines()
    weights, vocab = MODEL / "sst-treelstm-small.safetensors", MODEL / "sst-vocab.txt"
    model = espalier.load(MODEL / "treelstm.ra", weights, vocab=vocab, target=arguments.target)
    expected = model(trees)["sentiment"]
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory() as folder, local_cluster(arguments.nodes) as (cluster, workers):
        records = write_treebank(Path(folder), trees, arguments.repeat)
        rows = predict(Path(folder), espalier.ray.share(model), arguments.nodes, arguments.blocks)
        kill_at = None if arguments.kill_after is None else arguments.kill_after * records
        found, times = collect(rows, records, kill_at, lambda: cluster.remove_node(workers[0], allow_graceful=False))
    differ = sum(found[i].tobytes() != expected[i % len(trees)].tobytes() for i in found)
    report = {"nodes": arguments.nodes, "records": records, "lost": records - len(found), "differ": differ}
    rate = times.pop("rate")
    print(json.dumps({**report, **{f"{name}_s": round(t, 2) for name, t in times.items()}, "records_per_s": round(rate)}))
    raise SystemExit(report["lost"] > 0 or differ > 0)


if __name__ == "__main__":
    main()
