"""A contest in a process of its own, so that no runtime can bring down its caller."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from relayout.errors import RelayoutError
from relayout.timing.contest import Contest
from relayout.verify.child import answered
from relayout.verify.isolated import LONGEST
from relayout.verify.verdict import NumericOptions

WORKER = "relayout.timing.worker"


def contest_isolated(
    files: Mapping[str, Path],
    engine: str,
    options: NumericOptions,
    *,
    threads: int = 1,
    seconds: float = 20.0,
) -> Contest:
    """As `contest`, of the engine of a name."""
    request = {
        "files": {name: str(path.resolve()) for name, path in files.items()},
        "engine": engine,
        "options": options.to_json(),
        "threads": threads,
        "seconds": seconds,
        "memory": None,
    }
    try:
        status, output, errors = answered(WORKER, json.dumps(request), LONGEST + 4 * seconds)
    except subprocess.TimeoutExpired:
        raise RelayoutError("the models could not be timed: it took too long") from None
    if status != 0:
        last = errors.strip().splitlines()[-1:] or ["no message"]
        raise RelayoutError(f"the models could not be timed: {last[0]}")
    answer = json.loads(output)
    if "error" in answer:
        raise RelayoutError(answer["error"])
    return Contest.from_json(answer)
