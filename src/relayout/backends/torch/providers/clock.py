"""What kernels are timed by."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def cpu_clock() -> Callable[[], float]:
    """Time on its core where torch computes on the calling thread alone, else that on the wall.

    What else the machine does hardly shows on the core, and makes any kernel the fastest on the
    wall.
    """
    return time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
