"""Sweep a folder of models in all the ways that have to be equal.

    python -m benchmarks.sweeps PATH WORK [--only NAME ...] [--target NAME ...] [--kills 10]
        [-- ARGS ...]

PATH is as for `benchmarks.zoo`. Every model is optimised for every target (all, unless some are
named) by a pool of processes, once more by the same pool, which finds everything done, and by a Ray
cluster of three nodes, of which one is lost in the middle; and by sweeps that are killed at random
moments until the last one ends. ARGS go to `relayout optimize`. WORK keeps all that was written.
The exit code is 1 if anything was not equal, or done twice.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sweeps.comparison import differences, told
from benchmarks.sweeps.counted_job import JobCounts, program
from benchmarks.sweeps.local_cluster import local_cluster, lose_a_node
from benchmarks.zoo import entries
from relayout.sweep.executor import Executor
from relayout.sweep.job import SWEPT, SweptCall
from relayout.sweep.pool import Pool
from relayout.sweep.ray_cluster import RayCluster
from relayout.sweep.run import ModelSweep, SweepProgress, Tell
from relayout.sweep.table import TABLE
from relayout.targets.target import TARGETS

DOCUMENT = Path(__file__).parents[2] / "docs" / "sweep.md"
NODES = 3
KINDS = ("model.onnx", "report.html", "record.json")


@dataclass(frozen=True)
class ComparedSweeps:
    """The models, what is done with them, and where."""

    models: tuple[Path, ...]
    targets: tuple[str, ...]
    options: tuple[str, ...]
    work: Path
    size: int

    @property
    def jobs(self) -> int:
        return len(self.models) * len(self.targets)

    def sources(self) -> str:
        """A list of every model for every target."""
        path = self.work / "sources.txt"
        lines = [shlex.join([str(m), "--target", t]) for t in self.targets for m in self.models]
        path.write_text("\n".join(lines) + "\n")
        return f"@{path}"

    def run(self, name: str, executor: Executor, tell: Tell) -> float:
        """Sweep in this process; the seconds that it took, and what it took of it for each job."""
        began, own, out = time.perf_counter(), time.process_time(), self.work / name
        call = SweptCall(SWEPT["optimize"], "model.onnx", self.options)
        sweep = ModelSweep.of([self.sources()], out, call)
        sweep.write(sweep.run(executor, tell))
        milliseconds = 1e3 * (time.process_time() - own) / self.jobs
        print(f"  {milliseconds:.0f} ms of a core for a job in the process that sweeps")
        return time.perf_counter() - began

    def command(self, name: str) -> list[str]:
        """The same sweep as `run` has it, on the command line."""
        own = ["-o", str(self.work / name), "--jobs", str(self.size), *self.options]
        return [sys.executable, "-m", "relayout", "sweep", self.sources(), *own]


def by_pool(sweeps: ComparedSweeps) -> float:
    log = sweeps.work / "pool.log"
    seconds = sweeps.run("pool", Pool(sweeps.size, program(log)), lambda _: None)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, resident = (used.ru_utime + used.ru_stime) / sweeps.jobs, used.ru_maxrss / 1e6
    print(f"pool of {sweeps.size}: {seconds:.0f} s, {cpu:.2f} s of a core for a job")
    print(f"  {JobCounts.of(log).text()}; most resident {resident:.1f} GB")
    sizes = [f"{kind} {_kilobytes(sweeps, kind):.0f} kB" for kind in KINDS]
    print(f"  a job leaves {', '.join(sizes)}", flush=True)
    return seconds


def _kilobytes(sweeps: ComparedSweeps, kind: str) -> float:
    """What the files of one name hold, for a job."""
    files = (sweeps.work / "pool" / "models").glob(f"*/{kind}")
    return sum(file.stat().st_size for file in files) / sweeps.jobs / 1e3


def again(sweeps: ComparedSweeps, first: float) -> bool:
    """Whether a sweep that finds everything done takes under a fiftieth of the first."""
    began = time.perf_counter()
    command = sweeps.command("pool")
    code = subprocess.run(command, capture_output=True, check=False).returncode
    seconds = time.perf_counter() - began
    print(f"second sweep: {seconds:.2f} s, {100 * seconds / first:.2f} % of the first", flush=True)
    return code in {0, 1} and seconds < first / 50


def by_cluster(sweeps: ComparedSweeps) -> bool:
    """Whether a cluster that loses a node gives the same and does nothing twice."""
    log, lost = sweeps.work / "ray.log", list[int]()
    with local_cluster(NODES) as cluster:

        def tell(progress: SweepProgress) -> None:
            if lost or progress.finished < sweeps.jobs // 2:
                return
            if lose_a_node(cluster, busy_with=str(log)):
                lost.append(progress.finished)

        executor = RayCluster(cluster.address, program=program(log))
        seconds = sweeps.run("ray", executor, tell)
    counts = JobCounts.of(log)
    found = differences(sweeps.work / "pool", sweeps.work / "ray")
    print(f"Ray, {NODES} nodes, one lost after {lost[0]} jobs: {seconds:.0f} s; {told(found)}")
    print(f"  {counts.text()}", flush=True)
    return not found and set(counts.ended.values()) == {1}


def killed(sweeps: ComparedSweeps, kills: int, seconds: float) -> bool:
    """Whether sweeps that are killed again and again end as the pool did."""
    command, moments = sweeps.command("killed"), random.Random(0)
    done = list[int]()
    while len(done) < kills:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
            try:
                one.wait(moments.uniform(0, 1.6 * seconds / (kills + 1)))
                break
            except subprocess.TimeoutExpired:
                one.kill()
        done.append(len([*(sweeps.work / "killed").glob("models/*/record.json")]))
    subprocess.run(command, capture_output=True, check=False)
    found = differences(sweeps.work / "pool", sweeps.work / "killed")
    print(f"killed {len(done)} times, with {done} models done: {told(found)}", flush=True)
    return not found and len(done) == kills


def asked_of_the_table(table: Path) -> None:
    """The answer of DuckDB to the query of the document."""
    import duckdb  # noqa: PLC0415 - as users have it, or have it not

    (query,) = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    print(duckdb.sql(query.replace("swept/sweep.parquet", str(table))))


def main() -> int:
    own, _, rest = " ".join(map(shlex.quote, sys.argv[1:])).partition(" -- ")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--target", nargs="*", default=list(TARGETS))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(shlex.split(own))
    given = asked.work.resolve() / "given"
    given.mkdir(parents=True, exist_ok=True)
    models = tuple(e.file.resolve() for e in entries(asked.path, asked.only, given, keep=True))
    options = tuple(shlex.split(rest))
    sweeps = ComparedSweeps(models, tuple(asked.target), options, given.parent, asked.jobs)
    print(f"{len(models)} models for {', '.join(sweeps.targets)}: {sweeps.jobs} jobs", flush=True)
    first = by_pool(sweeps)
    held = [again(sweeps, first), by_cluster(sweeps)]
    if asked.kills:
        held.append(killed(sweeps, asked.kills, first))
    asked_of_the_table(sweeps.work / "pool" / TABLE)
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
