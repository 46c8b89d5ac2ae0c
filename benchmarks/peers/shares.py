"""How much of a run ONNX Runtime spends on moving data, by its own profile."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path

import onnxruntime

from relayout.timing.engines import Feeds

MOVING = frozenset(("Transpose", "ReorderInput", "ReorderOutput"))
"""Operators that change the order of data and nothing else."""
RUNS = 7


def moving_share(model: Path, feeds: Feeds, scratch: Path) -> tuple[float, float]:
    """Milliseconds of a run in operators that move data, and in all of them."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_profiling = True
    options.profile_file_prefix = str(scratch / "profile")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    for _ in range(RUNS):
        session.run(None, dict(feeds))
    file = Path(session.end_profiling())
    events = json.loads(file.read_text())
    file.unlink()
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            times[event["name"], event["args"]["op_name"]].append(event["dur"] / 1e3)
    # A node in a loop runs several times in each run; the median is of one time.
    spent = {key: statistics.median(each) * len(each) / RUNS for key, each in times.items()}
    moving = sum(time for (_, op_type), time in spent.items() if op_type in MOVING)
    return moving, sum(spent.values())
