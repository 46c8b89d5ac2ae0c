from collections.abc import Mapping
from itertools import pairwise, permutations
from typing import Any

import pytest

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


@pytest.mark.parametrize("count", [2, 3, 5])
def test_none_has_two_samples_in_a_row(count: int) -> None:
    machine, contest = turns(**dict.fromkeys(("given", "b", "c", "d", "e")[:count], 0.01))
    contest.until_settled("given", 1.0)
    sampled = machine.order[4 * count :: 2]
    assert len(sampled) > 8
    assert all(one != other for one, other in pairwise(sampled))


def test_each_comes_after_each_of_the_others() -> None:
    machine, contest = turns(given=0.01, b=0.01, c=0.01)
    contest.until_settled("given", 2.0)
    after = pairwise(machine.order[12::2])
    assert set(after) == set(permutations(("given", "b", "c"), 2))


class Cache(Machine):
    """A clock for models whose runs are slow until they have been run three times in a row."""

    def call(self, name: str, seconds: float) -> Any:
        def run(_feeds: Mapping[str, Any]) -> None:
            is_warm = self.order[-3:] == [name] * 3
            self.now += seconds if is_warm else 2 * seconds
            self.order.append(name)

        return run


def test_a_model_is_as_fast_as_itself() -> None:
    machine = Cache()
    calls = {name: machine.call(name, 0.01) for name in ("given", "same")}
    ratio = Turns(calls, {}, lambda: machine.now).until_settled("given", 9.0).ratio("same", "given")
    assert (ratio.median, ratio.low, ratio.high) == (1.0, 1.0, 1.0)


def test_a_timed_run_follows_one_of_the_same_model() -> None:
    machine, contest = turns(given=0.01, made=0.02)
    contest.until_settled("given", 60.0)
    assert machine.order[::2] == machine.order[1::2]


def test_short_runs_are_timed_several_at_once() -> None:
    _, contest = turns(given=1e-5, made=1e-5)
    times = contest.until_settled("given", 60.0)
    assert contest.repeats == 100
    assert round(times.median("given"), 9) == 1e-5
