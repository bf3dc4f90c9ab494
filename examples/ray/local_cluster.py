# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""A Ray cluster of several nodes on this machine: each is a set of processes with an object store of its own."""
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

# Read when ray is imported.  Nothing is reported; the processes of the cluster know each other by a token; and they listen on the
# loopback only, which Ray does where its clusters are disabled.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_AUTH_MODE="token",
    RAY_AUTH_TOKEN=os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32),
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
)

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

LOOPBACK = "127.0.0.1"


@contextmanager
def local_cluster(nodes: int, processors: int = 1, store: int = 100 * 2**20) -> Iterator[tuple[Cluster, list]]:
    """The cluster and its nodes for computing, which have the resource "compute".  The head, which the driver is connected to,
    reads records and stays.  `processors`: of each node; `store`: bytes of its object store."""
    common = {"node_ip_address": LOOPBACK, "object_store_memory": store, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **common})
    try:
        workers = [cluster.add_node(num_cpus=processors, resources={"compute": 1}, **common) for _ in range(nodes)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        yield cluster, workers
    finally:
        ray.shutdown()
        cluster.shutdown()
