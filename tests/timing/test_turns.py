from collections.abc import Mapping
from typing import Any

from relayout.timing.turns import FIRST_LOOK, Turns


class Machine:
    """A clock that runs on only while calls are made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def call(self, name: str, seconds: float) -> Any:
        def run(_feeds: Mapping[str, Any]) -> None:
            self.now += seconds
            self.order.append(name)

        return run


def turns(**seconds: float) -> tuple[Machine, Turns]:
    machine = Machine()
    calls = {name: machine.call(name, each) for name, each in seconds.items()}
    return machine, Turns(calls, {}, lambda: machine.now)


def test_what_is_clear_is_settled_at_the_first_look() -> None:
    _, contest = turns(given=0.02, made=0.01)
    times = contest.until_settled("given", 60.0)
    assert times.ratio("made", "given").pairs == FIRST_LOOK
    assert round(times.ratio("made", "given").median, 6) == 2.0
    assert round(times.median("made"), 6) == 0.01


def test_turns_end_with_the_seconds() -> None:
    _, contest = turns(given=0.02, made=0.01)
    times = contest.until_settled("given", 0.0)
    assert times.ratio("made", "given").pairs == 1


def test_every_other_turn_is_in_the_reverse_order() -> None:
    machine, contest = turns(given=0.01, made=0.01)
    contest.until_settled("given", 60.0)
    after_warming_up = machine.order[8:16:2]
    assert after_warming_up == ["given", "made", "made", "given"]


def test_a_timed_run_follows_one_of_the_same_model() -> None:
    machine, contest = turns(given=0.01, made=0.02)
    contest.until_settled("given", 60.0)
    assert machine.order[::2] == machine.order[1::2]


def test_short_runs_are_timed_several_at_once() -> None:
    _, contest = turns(given=1e-5, made=1e-5)
    times = contest.until_settled("given", 60.0)
    assert contest.repeats == 100
    assert round(times.median("given"), 9) == 1e-5
