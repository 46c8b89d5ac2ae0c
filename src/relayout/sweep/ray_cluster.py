"""Jobs as tasks of a Ray cluster that is there already."""

from __future__ import annotations

import importlib
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from relayout.errors import RelayoutError, missing
from relayout.graph.io.version import __version__
from relayout.sweep.job import Job, files_of
from relayout.sweep.process import CRASHED, PROGRAM, JobOutcome, SweepRecord, run_job

FileContents: TypeAlias = dict[str, bytes]
"""Files by their names as seen from a folder."""

RETRIES = 3
"""How often a job is begun again whose node was lost."""

_PATIENCE = 10.0
"""Seconds in which the head of a cluster has to answer."""

_POLL = 0.2
_WAITING_PER_CPU = 2
"""Jobs that are handed to the cluster for each of its cores, so that none of them waits for us."""


@dataclass
class RayCluster:
    """Runs jobs on the nodes of a cluster: an `Executor`.

    All nodes have this version of the package. They see models and results under the same paths,
    or, with `copies`, get the files of a model through the object store and send back what was
    made.
    """

    address: str
    copies: bool = False
    size: int | None = None
    """How many jobs at a time; by default as many as the cluster has room for."""
    program: Sequence[str] = PROGRAM
    _tasks: dict[Any, Job] = field(default_factory=dict)

    @property
    def running(self) -> Sequence[Job]:
        return list(self._tasks.values())

    def records(self, jobs: Sequence[Job], tell: Callable[[], None]) -> Generator[SweepRecord]:
        """The record of each job as it ends; tasks that are still there then are cancelled."""
        if not jobs:
            return
        with _connected(self.address) as ray:
            yield from self._records(ray, jobs, tell)

    def _records(
        self, ray: Any, jobs: Sequence[Job], tell: Callable[[], None]
    ) -> Generator[SweepRecord]:
        waiting = list(reversed(jobs))
        most = self.size or _WAITING_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
        try:
            while waiting or self._tasks:
                while waiting and len(self._tasks) < most:
                    job = waiting.pop()
                    self._tasks[self._started(ray, job)] = job
                ended, _ = ray.wait([*self._tasks], num_returns=len(self._tasks), timeout=_POLL)
                for task in ended:
                    yield self._record(ray, task, self._tasks.pop(task))
                tell()
        finally:
            for task in self._tasks:
                ray.cancel(task)
            self._tasks.clear()

    def _started(self, ray: Any, job: Job) -> Any:
        """The task of a job, which has a whole node to itself where times are measured."""
        function = _run_on_copies if self.copies else _run_in_place
        task = ray.remote(function).options(
            num_cpus=_largest_node(ray, job) if job.call.is_timed else 1,
            num_gpus=int(job.needs_gpu),
            memory=job.call.memory,
            max_retries=RETRIES,
            scheduling_strategy="SPREAD",
        )
        files = [_contents(job)] if self.copies else []
        return task.remote(__version__, job, tuple(self.program), *files)

    def _record(self, ray: Any, task: Any, job: Job) -> SweepRecord:
        try:
            result = ray.get(task)
        except ray.exceptions.RayError as error:
            return job.finished(_lost(job, error))
        if not self.copies:
            record: SweepRecord = result
            return record
        outcome, files = result
        job.clear()
        _write(job.folder, files)
        return job.finished(_renamed(job, outcome))


@contextmanager
def kept_handler() -> Iterator[None]:
    """What is done on SIGTERM stays what it was: Ray would end this process at once."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray with a cluster; it prints by itself, say that a node was lost, but not to our output."""
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise missing("--ray needs Ray", "ray") from None
    was_there = ray.is_initialized()
    with redirect_stdout(sys.stderr):
        try:
            _check_reachable(address)
            with kept_handler():
                ray.init(
                    address, log_to_driver=False, logging_level="error", ignore_reinit_error=True
                )
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise RelayoutError(f"there is no Ray cluster at {address}: {reason}") from None
        try:
            yield ray
        finally:
            if not was_there:
                ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


def _largest_node(ray: Any, job: Job) -> float:
    """The cores of the largest node that can run a job: no other job of a sweep fits beside it."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    able = [node for node in nodes if node.get("GPU") or not job.needs_gpu]
    if not able:
        raise RelayoutError("no node of the cluster has a GPU")
    return max(float(node.get("CPU", 1)) for node in able)


def _contents(job: Job) -> FileContents:
    return {name: path.read_bytes() for name, path in files_of(job.model.path).items()}


def _lost(job: Job, error: Exception) -> JobOutcome:
    """A job that ended with its node each time it was begun, or that no node could begin."""
    job.clear()
    reason = str(error).strip().splitlines()
    return {
        "status": CRASHED,
        "code": -1,
        "seconds": 0.0,
        "error": reason[-1] if reason else type(error).__name__,
        "answer": {},
    }


def _renamed(job: Job, outcome: JobOutcome) -> JobOutcome:
    """The outcome with the files where they are here, not where a node had them."""
    answer, here = dict(outcome["answer"]), {"source": job.model.path}
    if job.call.output is not None:
        here["output"] = job.folder / job.call.output
    answer.update((key, str(path)) for key, path in here.items() if answer.get(key))
    return {**outcome, "answer": answer}


def _run_in_place(version: str, job: Job, program: Sequence[str]) -> SweepRecord:
    """On a node: the record of a job whose files lie where they do for the caller.

    It is kept here too: if the node is lost before the caller has it, the job is not done again.
    """
    _check_version(version)
    known = job.record()
    if known is None:
        known = job.finished(run_job(job, program))
        job.keep(known)
    return known


def _run_on_copies(
    version: str, job: Job, program: Sequence[str], files: Mapping[str, bytes]
) -> tuple[JobOutcome, FileContents]:
    """On a node: what became of a job, and the files it made, in a folder of its own."""
    _check_version(version)
    with tempfile.TemporaryDirectory() as scratch:
        given = Path(scratch) / "given"
        _write(given, files)
        path = given / job.model.path.name
        own = replace(job, model=replace(job.model, path=path), out=Path(scratch) / "out")
        outcome = run_job(own, program)
        made = [path for path in own.folder.rglob("*") if path.is_file()]
        contents = {path.relative_to(own.folder).as_posix(): path.read_bytes() for path in made}
        return outcome, contents


def _check_version(version: str) -> None:
    if version != __version__:
        raise RelayoutError(f"the node has relayout {__version__}, the caller {version}")


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
