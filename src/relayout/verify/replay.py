"""Whether two models differ by nothing but decisions that rounding flips, or by feedback.

One ArgMax that comes out otherwise changes all that is computed after it, and what a Loop carries
from round to round may amplify rounding without end. So models that differ are compared again
with the decisions of the given run and with what its rounds began with: these become inputs of
both models. Then the results, those of each round, and what decisions are made on must agree as
usual, and each decision of the second model must be as good as the given one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from relayout.verify.decisions import Alternative, accepted, decisive
from relayout.verify.difference import (
    MOST_NOISE,
    MOST_NOISE_OF_DECISIONS,
    NOISE_FACTOR,
    STRICT,
    Noise,
    Tolerance,
    difference,
    widened,
)
from relayout.verify.interface import Port
from relayout.verify.judge import Judge
from relayout.verify.player import Player, Record, recorded
from relayout.verify.pools import Pools
from relayout.verify.runtimes import ONNX_RUNTIME, ExhaustedError, RefusedError, read
from relayout.verify.script import Script, SharedDecision
from relayout.verify.verdict import NumericOptions, NumericVerdict, ReplayedDecisions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface
    from relayout.verify.runtimes import Runnable

MOST_AXES = 5
"""Operands of more axes are not compared in other orders of them."""


class _NotReplayedError(Exception):
    """Why a difference is more than decisions that rounding flips, or may be."""


@dataclass(frozen=True)
class Replay:
    """Two models, and the cases in which they differ."""

    before: Runnable
    after: Runnable
    interface: Interface
    options: NumericOptions
    cases: Sequence[Case]

    def weighed(self, verdict: NumericVerdict) -> NumericVerdict:
        """The verdict on the two models, which is that they are equal if only decisions differ."""
        try:
            replayed = self._replayed()
        except (_NotReplayedError, RefusedError, ExhaustedError) as error:
            return replace(verdict, not_replayed=str(error))
        if replayed is None:
            return verdict
        return replace(verdict, status="equal", worst=None, replayed=replayed)

    def _replayed(self) -> ReplayedDecisions | None:
        models = read(self.before), read(self.after)
        script = Script.of(*models)
        if not script.fed:
            return None
        live = decisive(models[0]) - {one.name for one in script.decisions}
        records = recorded(self.before, self.interface, script, self.cases)
        script = _on_floats(script, records[0])
        given, other = (
            Player.of(source, self.interface, script, records[0])
            for source in (self.before, self.after)
        )
        scenes = [
            _Scene(given, other, script, record, _staged(case, script, record), bool(live))
            for case, record in zip(self.cases, records, strict=True)
        ]
        self._check_results(scenes)
        counts = [scene.flips() for scene in scenes]
        return ReplayedDecisions(
            sum(one for one, _ in counts), sum(flipped for _, flipped in counts)
        )

    def _check_results(self, scenes: Sequence[_Scene]) -> None:
        """See that both models compute the same from the same decisions."""
        scene = scenes[0]
        ports = [Port(f"{one.name} of a round", "tensor") for one in scene.script.carried]
        interface = replace(self.interface, outputs=(*self.interface.outputs, *ports))
        count = len(interface.outputs)
        made = scene.made.first(count)
        runtime = replace(ONNX_RUNTIME, open=lambda _source, _interface: made)
        noise = scene.given.conditioning(scene.touched, scene.most).first(count)
        judge = Judge(runtime, scene.given.first(count), interface, self.options, noise)
        verdict = judge.judge(self.after, [one.case for one in scenes])
        if not verdict.equal:
            raise _NotReplayedError(f"with the same decisions {verdict.reason or verdict.worst}")


def _on_floats(script: Script, record: Record) -> Script:
    """Whole numbers, as in arithmetic on lengths, have no rounding to replay."""
    return Script(
        [one for one in script.decisions if _is_float(record[one.operands[0]])],
        [one for one in script.carried if _is_float(record[one.label])],
    )


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.name in STRICT


def _staged(case: Case, script: Script, record: Record) -> Case:
    """A case in which decisions are inputs, and what rounds end with are results."""
    feeds = {**case.feeds, **{name: record[name] for name in script.fed}}
    return replace(
        case, feeds=feeds, results=[*case.results, *(record[one.next] for one in script.carried)]
    )


@dataclass(frozen=True)
class _Scene:
    """Two models that are given the same decisions in one case."""

    given: Player
    made: Player
    script: Script
    record: Record
    case: Case
    has_others: bool
    """Whether the models make decisions that they are not given."""

    @property
    def touched(self) -> set[str]:
        """The inputs that are changed to see what rounding does: all but the decisions."""
        return set(self.case.feeds) - {one.label for one in self.script.decisions}

    @property
    def most(self) -> float:
        return MOST_NOISE_OF_DECISIONS if self.has_others else MOST_NOISE

    def flips(self) -> tuple[int, int]:
        """How many decisions there are, and how many the second model makes otherwise, as well."""
        made = self.made.record(self.made.run(self.case.feeds))
        for one in self.script.decisions:
            self._check_operands(one, made)
            self._check_decision(one, made[one.own])
        pairs = [(self.record[one.label], made[one.own]) for one in self.script.decisions]
        return sum(own.size for own, _ in pairs), sum(_count(*pair) for pair in pairs)

    def _check_operands(self, decision: SharedDecision, made: Record) -> None:
        for label in decision.operands:
            old, new = self.record[label], made.get(label)
            if not _is_float(old) or new is None:
                continue
            if any(self._same(label, old, order) for order in _orders(new, old.shape)):
                continue
            raise _NotReplayedError(f"decision '{decision.name}' is made on other numbers")

    def _same(self, label: str, old: Any, new: Any) -> bool:
        if difference(old, new, Tolerance(STRICT)).excused:
            return True
        return difference(old, new, Tolerance(STRICT), self._noise[label]).excused

    def _check_decision(self, decision: SharedDecision, other: Any) -> None:
        own = self.record[decision.label]
        if np.array_equal(own, other):
            return
        operands = [self.record[label] for label in decision.operands]
        room = [self._room(label) for label in decision.operands]
        for parts in _rounds(decision.depth, [own, other, *operands, *room]):
            rest = parts[2:]
            half = len(rest) // 2
            choice = Alternative(decision.node, rest[:half], rest[half:], parts[0], parts[1])
            if not accepted(choice):
                raise _NotReplayedError(f"decision '{decision.name}' is not flipped by rounding")

    def _room(self, label: str) -> Any:
        """By how much rounding may change each element of what is read for a decision."""
        value = self.record[label]
        if not _is_float(value):
            return np.zeros(value.shape)
        wide = value.astype(np.float64)
        pools = Pools.of(wide)
        room = Tolerance(STRICT).of(value.dtype) * pools.scale(wide)
        noise = self._noise[label]
        return room if noise is None else np.maximum(room, NOISE_FACTOR * pools.shared(noise))

    @cached_property
    def _noise(self) -> dict[str, Noise]:
        labels = [label for one in self.script.decisions for label in one.operands]
        noise: dict[str, Noise] = dict.fromkeys(labels)
        conditioning = self.given.conditioning(self.touched, self.most)
        for results in conditioning.results(self.case.feeds):
            found = self.given.record(results)
            noise = {
                label: widened(noise[label], self.record[label], found[label], self.most)
                for label in labels
            }
        return noise


def _orders(array: Any, shape: tuple[int, ...]) -> list[Any]:
    """An array in the orders of its axes that have a shape, as given first."""
    same = [array] if array.shape == shape else []
    if array.ndim > MOST_AXES or sorted(array.shape) != sorted(shape):
        return same
    turned = (array.transpose(order) for order in permutations(range(array.ndim)))
    return [*same, *(other for other in turned if other.shape == shape)]


def _count(own: Any, other: Any) -> int:
    return int(np.sum(own != other)) if own.shape == other.shape else abs(len(own) - len(other))


def _rounds(depth: int, arrays: Sequence[Any]) -> list[Sequence[Any]]:
    """The parts of arrays that belong to one round each."""
    if depth == 0:
        return [arrays]
    count = min(len(array) for array in arrays)
    return [
        part for i in range(count) for part in _rounds(depth - 1, [array[i] for array in arrays])
    ]
