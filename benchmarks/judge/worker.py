"""Judges the models of a range of seeds, in a process of its own, since runtimes may end it."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from benchmarks.judge.models import DroppedError, Generated, generated
from benchmarks.judge.reducing import reduced
from benchmarks.judge.verdicts import PLAIN, TUNED, VERIFIED, Verdict, judged, roads_of


def main(arguments: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    first, end, plain, tuned, verified = map(int, arguments[:5])
    folder, targets = Path(arguments[5]), arguments[6:]
    for seed in range(first, end):
        _say({"doing": "generating", "seed": seed})
        try:
            given = generated(seed)
        except DroppedError as error:
            _say({"road": "generating", "kind": "dropped", "reason": _class_of(str(error))})
            continue
        objective = "count" if _drawn(seed, 2, "objective") else "bytes"
        roads = roads_of(
            *(given, targets),
            plain=_drawn(seed, plain, PLAIN),
            tuned=_drawn(seed, tuned, TUNED),
            verified=_drawn(seed, verified, VERIFIED),
        )
        for road in roads:
            _say({"doing": road, "seed": seed})
            verdict = judged(given, road, objective)
            record = {"road": road, "kind": verdict.kind, "reason": verdict.reason}
            if verdict.failed:
                record["seed"] = str(seed)
                record["file"] = str(_written(given, verdict, objective, seed, folder))
            _say(record)


def _drawn(seed: int, every: int, what: str) -> bool:
    """One of so many models; not by the seed itself, from which the opset and the size follow."""
    return every > 0 and random.Random(f"{what} {seed}").randrange(every) == 0


def _written(given: Generated, verdict: Verdict, objective: str, seed: int, folder: Path) -> Path:
    """The smallest part that fails in the same way."""

    def fails(part: Generated) -> bool:
        found = judged(part, verdict.road, objective)
        return found.kind == verdict.kind and _class_of(found.reason) == _class_of(verdict.reason)

    folder.mkdir(parents=True, exist_ok=True)
    single = (replace(given, cases=(case,)) for case in given.cases)
    small = reduced(next(filter(fails, single), given), fails)
    path = folder / f"{verdict.road.replace(' ', '')}-{objective}-{seed}.onnx"
    onnx.save(small.model, path)
    (path.with_suffix(".txt")).write_text(
        f"{verdict.reason}\n{onnx.printer.to_text(small.model)}\n", encoding="utf-8"
    )
    return path


def _class_of(reason: str) -> str:
    """The first words of a reason, without the numbers that differ between models."""
    words = [word for word in reason.split() if not any(c.isdigit() for c in word)]
    return " ".join(words[:6])


def _say(record: Mapping[str, object]) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
