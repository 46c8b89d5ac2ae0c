"""Work on the parts of a large array, shared by the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Found = TypeVar("Found")


def on_cores(work: Callable[[Part], Found], parts: Iterable[Part]) -> Iterator[Found]:
    """What is found for each part, in their order; a single part is not worth a thread."""
    listed = list(parts)
    if len(listed) < 2:
        yield from map(work, listed)
        return
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    with ThreadPoolExecutor(count) as pool:
        yield from pool.map(work, listed)
