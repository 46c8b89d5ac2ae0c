"""When Python's garbage collector is held back."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from relayout.graph.collector import SLACK, paused_collector

ENDS = """
import atexit
import gc

atexit.register(lambda: print(gc.get_freeze_count() > 0))  # what is registered first runs last
from relayout.cli import main

main(["optimize", "missing.onnx"])
"""


def test_nothing_is_collected_at_the_end_of_a_command() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_the_collector_is_on_again_also_after_an_error() -> None:
    with pytest.raises(KeyError):
        _fail_while_paused()
    assert gc.isenabled()


@paused_collector()
def _fail_while_paused() -> None:
    assert not gc.isenabled()
    raise KeyError


def test_what_was_made_while_paused_counts_as_old() -> None:
    with paused_collector():
        kept = [[number] for number in range(100_000)]
        assert gc.get_count()[0] > len(kept) / 2
    assert gc.get_count()[0] < 1_000


def test_what_calls_leave_behind_does_not_add_up() -> None:
    """Nothing is collected during a call, so the next ones have to."""

    @paused_collector()
    def call() -> None:
        for _ in range(SLACK):
            cycle: list[object] = []
            cycle.append(cycle)

    call()
    before = len(gc.get_objects())
    for _ in range(8):
        call()
    assert len(gc.get_objects()) < 2 * before + 3 * SLACK


def test_what_the_caller_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with paused_collector():
            pass
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()
