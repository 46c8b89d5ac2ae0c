"""A sweep on a Ray cluster of several nodes gives what a pool of processes gives."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sweeps.local_cluster import local_cluster, lose_a_node
from relayout.cli import main
from relayout.errors import RelayoutError
from relayout.graph.io.version import __version__
from relayout.sweep import ray_cluster
from relayout.sweep.job import RECORD, SWEPT, SweptCall
from relayout.sweep.pool import Pool
from relayout.sweep.ray_cluster import RayCluster
from relayout.sweep.run import ModelSweep, SweepProgress
from tests.sweep.test_sweep import STAND_IN, folder_of, started

ray = pytest.importorskip("ray")

CALL = SweptCall(SWEPT["optimize"], "model.onnx", seconds=30.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes with a core each, to which this process is connected."""
    with local_cluster(3) as made:
        with ray_cluster.kept_handler():
            ray.init(made.address, log_to_driver=False, logging_level="error")
        yield made


def on_cluster(cluster: Any, **settings: Any) -> RayCluster:
    return RayCluster(cluster.address, program=STAND_IN, **settings)


def told(out: Path) -> dict[str, Any]:
    """What a sweep left behind, but for the times that it took and the places it was in."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        if path.name == RECORD:
            record = json.loads(path.read_text())
            record["seconds"] = None
            found[path.relative_to(out).as_posix()] = record
        elif path.is_file():
            found[path.relative_to(out).as_posix()] = path.read_bytes()
    return found


@pytest.mark.parametrize("copies", [False, True], ids=("in place", "copies"))
def test_a_cluster_gives_what_a_pool_gives(
    tmp_path: Path, cluster: Any, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, "a", "bad", "crash", "deep/a", "refused", "z")
    monkeypatch.chdir(tmp_path)
    left = {}
    for name, executor in (
        ("pool", Pool(2, STAND_IN)),
        ("ray", on_cluster(cluster, copies=copies)),
    ):
        ModelSweep.of([str(folder)], Path(name), CALL).run(executor, lambda _: None)
        left[name] = told(tmp_path / name)
    assert left["ray"] == left["pool"]
    again = ModelSweep.of([str(folder)], tmp_path / "ray", CALL)
    assert all(job.record() for job in again.jobs)


def test_what_a_lost_node_did_is_done_by_another(
    tmp_path: Path, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"pause{i}" for i in range(9)]
    folder, out = folder_of(tmp_path, *names), tmp_path / "out"
    lost: list[bool] = []

    def tell(progress: SweepProgress) -> None:
        if progress.finished >= 2 and not lost and lose_a_node(cluster, busy_with=STAND_IN[0]):
            lost.append(True)

    rows = ModelSweep.of([str(folder)], out, CALL).run(on_cluster(cluster), tell)
    assert lost
    assert [one["status"] for one in rows] == ["done"] * 9
    counts = started(folder)
    assert sorted(counts) == names
    assert sum(counts.values()) <= 9 + 1, "only what the lost node had begun is begun again"
    assert ModelSweep.of([str(folder)], out, CALL).run(on_cluster(cluster), tell) == rows
    assert started(folder) == counts
    assert capsys.readouterr().out == "", "Ray tells of the node, but not among our results"


def test_a_job_whose_record_got_lost_on_its_way_is_not_done_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a")
    (job,) = ModelSweep.of([str(folder)], tmp_path / "out", CALL).jobs
    first = ray_cluster._run_in_place(__version__, job, STAND_IN)
    assert ray_cluster._run_in_place(__version__, job, STAND_IN) == first
    assert started(folder) == {"a": 1}


def test_whoever_stops_asking_stops_what_runs(tmp_path: Path, cluster: Any) -> None:
    folder = folder_of(tmp_path, "a", "slow1", "slow2")
    sweep = ModelSweep.of([str(folder)], tmp_path / "out", CALL)

    def tell(progress: SweepProgress) -> None:
        if progress.finished and len(started(folder)) == 3:
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sweep.run(on_cluster(cluster), tell)
    assert time.monotonic() - began < 30
    assert [bool(job.record()) for job in sweep.jobs] == [True, False, False]


@pytest.mark.usefixtures("cluster")
def test_who_asks_is_not_ended_by_a_signal_that_it_handles() -> None:
    """Ray, once connected, would end the process itself, with what it staged still there."""
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_address_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ray.shutdown()
    folder = folder_of(tmp_path, "a")
    call = ["sweep", str(folder), "-o", str(tmp_path / "out")]
    assert main([*call, "--ray", "127.0.0.1:1"]) == 2
    assert "there is no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err
    assert main([*call, "--ray-copies"]) == 2
    assert "name one by --ray ADDRESS" in capsys.readouterr().err


def test_times_are_measured_on_a_node_alone(tmp_path: Path, cluster: Any) -> None:
    folder = folder_of(tmp_path, "a", "b")
    call = SweptCall(SWEPT["bench"], options=("--device", "cuda"))
    with pytest.raises(RelayoutError, match="no node of the cluster has a GPU"):
        ModelSweep.of([str(folder)], tmp_path / "gpu", call).run(
            on_cluster(cluster), lambda _: None
        )
    plain = SweptCall(SWEPT["bench"])
    records = ModelSweep.of([str(folder)], tmp_path / "cpu", plain).run(
        on_cluster(cluster), lambda _: None
    )
    assert [one["status"] for one in records] == ["done", "done"]
