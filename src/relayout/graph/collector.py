"""Python's garbage collector, held back where it would only cost time."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """A large model is millions of live objects, which the collector would walk time and again.

    What was made meanwhile counts as old afterwards, or else all of it would be walked at once.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def leave_garbage() -> None:
    """Collect nothing when the process ends: the system takes all of its memory back anyway."""
    atexit.register(gc.freeze)
