"""Models in a runtime as given and optimised: python -m benchmarks.speed_zoo PATH

PATH is a zoo as for `benchmarks.zoo`, with an `index.json` that lists the inputs. The runtime is
the one that the target is for, ONNX Runtime for standard operators, with its default settings; on
one thread models are timed on its core, on more by the clock, in turns. One line a model that
changes: the median time of each, and the median of pairs of how many times as fast the optimised
one is, with the interval that holds it with 95 % confidence. Geometric means and the least last.
With `--measure` the runtime itself chooses among candidates. Fewer Transposes are not always less
time: a runtime has its own ways to get rid of them, and joins operators only where it finds them
as it expects.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.zoo import Entry, entries
from relayout.api import Measuring, optimize
from relayout.timing.engines import ONNX_RUNTIME_ENGINE, OPENVINO_ENGINE
from relayout.timing.ratio import PairedRatio
from relayout.timing.turns import CORE_TIME, WALL_TIME, Turns

GIVEN, OPTIMISED = "given", "optimised"
ENGINES = {"ort": ONNX_RUNTIME_ENGINE, "openvino": OPENVINO_ENGINE}
FROM_TENSORFLOW = ("tf2onnx_", "tflite_", "tfjs_")
"""How names of models begin that came from TensorFlow."""


@dataclass(frozen=True, slots=True)
class Row:
    """A model that changed."""

    name: str
    before: int
    after: int
    """Transposes."""
    given_ms: float
    optimised_ms: float
    ratio: PairedRatio
    keeps: bool
    """Whether ONNX Runtime itself leaves some of the Transposes."""

    def __str__(self) -> str:
        ratio = self.ratio
        return (
            f"{self.name}: {self.before} -> {self.after} Transposes, "
            f"{self.given_ms:.2f} -> {self.optimised_ms:.2f} ms, {ratio.median:.3f} times as fast "
            f"({ratio.low:.3f} to {ratio.high:.3f}, {ratio.pairs} pairs)"
        )


def feeds_of(row: dict[str, Any]) -> dict[str, Any]:
    """Random operands of the types, shapes and ranges that an index gives."""
    random = np.random.default_rng(0)
    ranges = row.get("integer_ranges", {})
    feeds: dict[str, Any] = {}
    for name, (dtype, shape) in row["feeds"].items():
        if np.issubdtype(np.dtype(dtype), np.floating):
            feeds[name] = random.standard_normal(shape).astype(dtype)
        else:
            low, high = ranges.get(name, (0, 2))
            feeds[name] = random.integers(low, high, shape).astype(dtype)
    return feeds


def measured(entry: Entry, options: argparse.Namespace, scratch: Path) -> Row | None:
    """How many times as fast the optimised model is; None where it is the same."""
    measuring = Measuring(threads=options.threads) if options.measure else None
    result = optimize(
        entry.file,
        target=options.target,
        minimize=options.minimize,
        verify=False,
        measure=measuring,
    )
    if not result.changed:
        return None
    made = scratch / "optimised.onnx"
    onnx.save(result.model, made)
    engine = ENGINES.get(options.target, ONNX_RUNTIME_ENGINE)
    files = {GIVEN: entry.file, OPTIMISED: made}
    calls = {name: engine.open(file, options.threads) for name, file in files.items()}
    turns = Turns(calls, feeds_of(entry.row), CORE_TIME if options.threads == 1 else WALL_TIME)
    times = turns.until_settled(GIVEN, options.seconds)
    return Row(
        entry.name,
        result.before.transposes,
        result.after.transposes,
        1e3 * times.median(GIVEN),
        1e3 * times.median(OPTIMISED),
        times.ratio(OPTIMISED, GIVEN),
        bool((entry.row.get("transposes_left") or {}).get("ort_all")),
    )


def rows_of(options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for entry in entries(options.path, options.only, scratch):
            try:
                row = measured(entry, options, scratch)
            except Exception as error:  # noqa: BLE001 - the others are still worth measuring
                print(f"{entry.name}: {type(error).__name__}: {error}", flush=True)
                continue
            if row is not None:
                print(row, flush=True)
                yield row


def summary(rows: Sequence[Row], below: float) -> Iterator[str]:
    groups = {
        "that change": rows,
        "of them that keep Transposes in ONNX Runtime": [row for row in rows if row.keeps],
        "of them from TensorFlow": [row for row in rows if row.name.startswith(FROM_TENSORFLOW)],
    }
    for words, some in groups.items():
        if some:
            ratios = [row.ratio.median for row in some]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            count = f"{len(some)} models {words}"
            yield f"{count}: {mean:.3f} times as fast, {min(ratios):.3f} at least"
    slow = [row for row in rows if row.ratio.median < below]
    surely = [row for row in slow if row.ratio.high < below]
    yield f"under {below}: {len(slow)}, with the whole interval {len(surely)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--target", default="onnx")
    parser.add_argument("--minimize", help="the target's own objective unless given")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6.0, help="at most, for each model")
    parser.add_argument("--measure", action="store_true", help="choose by times on this machine")
    parser.add_argument("--below", type=float, default=0.98, help="ratios that are counted")
    parser.add_argument("--output", type=Path, help="a file for the rows, as JSON")
    options = parser.parse_args()
    rows = []
    for row in rows_of(options):
        rows.append(row)
        if options.output is not None:
            options.output.write_text(json.dumps([asdict(each) for each in rows], indent=1))
    print("\n".join(summary(rows, options.below)))


if __name__ == "__main__":
    main()
