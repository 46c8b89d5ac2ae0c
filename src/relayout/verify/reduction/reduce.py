"""Two files that differ, made as small as can be, in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx

from relayout.errors import RelayoutError
from relayout.verify.isolated import LONGEST, default_memory, verdict_of
from relayout.verify.verdict import NumericOptions, NumericVerdict

SECONDS = 60.0
"""How long smaller pairs are searched for."""


@dataclass(frozen=True)
class ReducedPair:
    """The smallest pair that was found, and how its models differ."""

    before: Path
    after: Path
    verdict: NumericVerdict

    def summary(self) -> str:
        counts = [len(onnx.load(path).graph.node) for path in (self.before, self.after)]
        sizes = " and ".join(f"{n} node{'s' * (n != 1)}" for n in counts)
        return f"smallest parts that still differ: {self.before} and {self.after}, {sizes}"


def reduce_pair(
    before: Path, after: Path, folder: Path, options: NumericOptions, seconds: float = SECONDS
) -> ReducedPair | None:
    """Writes the smallest parts of two models that differ; None if runs show no difference."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RelayoutError(f"cannot write to '{folder}': {error.strerror}") from None
    name = after.name if after.name != before.name else f"other_{after.name}"
    files = {"before": str(before), "after": str(after), "after_name": name}
    settings = {"folder": str(folder), "seconds": seconds, "options": options.to_json()}
    memory = default_memory(options, before, after)
    worker = "relayout.verify.reduction.worker"
    verdict = verdict_of(worker, files | settings, LONGEST, memory)
    if verdict.status != "differs":
        return None
    return ReducedPair(folder / before.name, folder / name, verdict)
