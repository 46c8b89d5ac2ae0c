"""A Ray cluster of some nodes on this machine, as tests and benchmarks use it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from relayout.sweep.ray_cluster import kept_handler

# A lost node is seen to be lost within a second, and jobs are no nicer than those of a pool.
_SETTINGS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_failure_threshold": 3,
    "worker_niceness": 0,
}


@contextmanager
def local_cluster(nodes: int, cores: int = 1) -> Iterator[Any]:
    """So many nodes, which share the cores that there are, whatever each of them says."""
    ray = importlib.import_module("ray")
    utils = importlib.import_module("ray.cluster_utils")
    small = {"num_cpus": cores, "object_store_memory": 80 * 2**20}
    head = {**small, "include_dashboard": False, "_system_config": _SETTINGS}
    with kept_handler():
        cluster = utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes - 1):
            with kept_handler():
                cluster.add_node(**small)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def lose_a_node(cluster: Any, busy_with: str) -> bool:
    """End a node at once, as a machine ends that loses its power, while it runs a program.

    False if there is none that does.
    """
    psutil = importlib.import_module("psutil")
    for node in sorted(cluster.worker_nodes, key=lambda node: str(node.unique_id)):
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        below = raylet.children(recursive=True)
        if any(busy_with in _call(psutil, process) for process in below):
            for process in (raylet, *below):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            cluster.remove_node(node, allow_graceful=False)
            return True
    return False


def _call(psutil: Any, process: Any) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""
