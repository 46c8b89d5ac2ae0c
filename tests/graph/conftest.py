"""Shared by the tests of loading and saving."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_hang() -> Iterator[None]:
    """End a test that waits for ever."""

    def stop(*_: object) -> None:
        raise TimeoutError("the test hangs")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
