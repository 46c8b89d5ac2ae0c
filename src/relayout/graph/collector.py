"""Python's garbage collector, held back where it would only cost time."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SLACK = 200_000
"""So many objects may be garbage that nobody has looked for."""


@dataclass(slots=True)
class _Tally:
    """What calls left behind since garbage was last looked for, and how much there was then."""

    left: int = 0
    kept: int = 0

    def add(self, made: int) -> None:
        self.left += made

    def collect_what_was_left(self) -> None:
        """Look for garbage once twice as many objects may be there: a small part of making them.

        Without it every call would leave its models behind, since nothing is collected while it
        runs and little is made between calls. Objects are counted only then: a count walks them.
        """
        if self.left <= SLACK + self.kept:
            return
        gc.collect()
        self.left, self.kept = 0, len(gc.get_objects())


_tally = _Tally()


@contextmanager
def paused_collector() -> Iterator[None]:
    """A large model is millions of live objects, which the collector would walk time and again.

    What was made meanwhile counts as old afterwards, or else all of it would be walked at once.
    """
    if not gc.isenabled():
        yield
        return
    _tally.collect_what_was_left()
    gc.disable()
    try:
        yield
    finally:
        _tally.add(gc.get_count()[0])
        _make_old()
        gc.enable()


def leave_garbage() -> None:
    """Collect nothing when the process ends: the system takes all of its memory back anyway."""
    atexit.register(gc.freeze)


def _make_old() -> None:
    """Let all objects count as old, unless the caller froze some, which would no longer be."""
    if gc.get_freeze_count():
        return
    gc.freeze()
    gc.unfreeze()
