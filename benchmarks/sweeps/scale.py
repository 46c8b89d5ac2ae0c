"""What a sweep of very many models costs besides the models themselves.

    python -m benchmarks.sweeps.scale SWEPT WORK [--models 10000]

SWEPT is a folder that a sweep wrote. Its records are given to so many models (which differ in an
option only) of a sweep in WORK, which then finds everything done. Prints what that takes for each
model: seconds of a core, memory, and bytes of the record, the table and the page.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from relayout.sweep.job import RECORD, SWEPT, SweptCall
from relayout.sweep.pool import Pool
from relayout.sweep.run import ModelSweep


def _records(swept: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(swept.glob(f"models/*/{RECORD}")):
        yield json.loads(path.read_text())


def _sweep(records: list[dict[str, Any]], work: Path) -> ModelSweep:
    """A model for each record, with options of its own."""
    work.mkdir(parents=True, exist_ok=True)
    listed = work / "sources.txt"
    lines = [f"{one['source']} --budget {number}\n" for number, one in enumerate(records)]
    listed.write_text("".join(lines))
    call = SweptCall(SWEPT["optimize"], "model.onnx")
    return ModelSweep.of([f"@{listed}"], work / "out", call)


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("swept", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--models", type=int, default=10000)
    asked = parser.parse_args()
    known = list(_records(asked.swept))
    records = list(islice(cycle(known), asked.models))
    sweep = _sweep(records, asked.work)
    for job, record in zip(sweep.jobs, records, strict=True):
        job.folder.mkdir(parents=True, exist_ok=True)
        job.keep({**record, "name": job.model.name, "asked": job.asked()})
    began, before = time.process_time(), _resident()
    sweep = _sweep(records, asked.work)
    rows = sweep.run(Pool(1), lambda _: None)
    index, table = sweep.write(rows)
    seconds, memory = time.process_time() - began, _resident() - before
    kept = sum((job.folder / RECORD).stat().st_size for job in sweep.jobs)
    print(f"{len(rows)} models known: {seconds:.1f} s of a core, {memory / 1e6:.0f} MB of memory")
    print(
        f"a model: {1e3 * seconds / len(rows):.2f} ms, {memory / len(rows) / 1e3:.1f} kB of memory"
    )
    sizes = {"record": kept, "table": table.stat().st_size, "page": index.stat().st_size}
    print(", ".join(f"{name} {size / len(rows) / 1e3:.2f} kB" for name, size in sizes.items()))


if __name__ == "__main__":
    main()
