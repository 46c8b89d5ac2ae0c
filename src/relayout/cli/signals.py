"""Signals that ask a command to end: it ends as after Ctrl-C, with what it staged removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ASKING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Besides SIGINT, which Python turns into KeyboardInterrupt itself."""


class EndedBySignal(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def code_of(interrupt: KeyboardInterrupt) -> int:
    """The exit code of what a signal ended, as shells give it: 128 and its number."""
    number = interrupt.number if isinstance(interrupt, EndedBySignal) else signal.SIGINT
    return 128 + number


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let signals raise here; a second one of a kind ends the process at once.

    A signal that was ignored when the process was started stays ignored, as `nohup` wants it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in ASKING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise EndedBySignal(number)
