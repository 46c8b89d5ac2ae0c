"""Work that a kernel would do again and again, and when that costs more than it saves.

An operator that is not tied to the loop of its kernel is computed where it is read. After a
broadcast that is once for each reading, so a costly operator may be better off in its own kernel.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from relayout.fusion.sketch import Count, Sketch, SketchOperator
from relayout.ops.kernels import Role


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast a device is; only the ratios matter."""

    bytes_per_second: float = 1e12
    operations_per_second: float = 1e13
    seconds_per_launch: float = 4e-6

    def seconds(self, moved: int, launches: int) -> float:
        return moved / self.bytes_per_second + launches * self.seconds_per_launch


def repeated_seconds(
    sketch: Sketch, members: Sequence[int], tied: Container[int], rates: Rates
) -> float:
    """The time for costly work beyond the first; infinite if it is not known."""
    costly = [number for number in members if sketch.operators[number].work > 1]
    if not costly:
        return 0.0
    repeats = _repeats(sketch, members, tied)
    again = 0.0
    for operator in (sketch.operators[number] for number in costly if repeats[number] > 1):
        again += (repeats[operator.number] - 1) * _elements(operator) * operator.work
    return again / rates.operations_per_second


def _repeats(sketch: Sketch, members: Sequence[int], tied: Container[int]) -> dict[int, float]:
    """How often each element is computed, at most."""
    repeats: dict[int, float] = {}
    for number in reversed(members):
        operator = sketch.operators[number]
        readings = [
            repeats[reader] * ratio(sketch.operators[reader], operator)
            for result in operator.results
            for reader in result.readers
            if reader in repeats
        ]
        repeats[number] = 1.0 if number in tied else max(readings, default=1.0)
    return repeats


def ratio(reader: SketchOperator, source: SketchOperator) -> float:
    """How often a reader reads each element of what another operator makes."""
    if reader.role not in {Role.GATHER, Role.POINTWISE} or reader.count == source.count:
        return 1.0
    if reader.count is None or source.count is None or not source.count[0]:
        return math.inf
    return max(1.0, _quotient(reader.count, source.count))


def _quotient(count: Count, by: Count) -> float:
    symbols = list(count[1])
    for symbol in by[1]:
        if symbol not in symbols:
            return math.inf
        symbols.remove(symbol)
    return math.inf if symbols else count[0] / by[0]


def _elements(operator: SketchOperator) -> float:
    if operator.count is None or operator.count[1]:
        return math.inf
    return float(operator.count[0])


def without_repeats(sketch: Sketch, group: Sequence[int], rates: Rates) -> Iterator[list[int]]:
    """A group, or the groups it is cut into at broadcasts of costly work, in order."""
    cut = _cut(sketch, group, rates)
    if cut is None:
        yield list(group)
        return
    yield from without_repeats(sketch, [each for each in group if each in cut], rates)
    yield from without_repeats(sketch, [each for each in group if each not in cut], rates)


def _cut(sketch: Sketch, group: Sequence[int], rates: Rates) -> set[int] | None:
    """What should be computed before the rest of its group, if anything should."""
    if len(group) < 2 or not any(sketch.operators[each].work > 1 for each in group):
        return None
    repeats = _repeats(sketch, group, ())
    for number in reversed(group):
        operator = sketch.operators[number]
        if repeats[number] <= 1 or math.isinf(repeats[number]):
            continue
        upper = _leading_to(sketch, number, set(group))
        costly = (sketch.operators[each] for each in upper)
        work = sum(_elements(each) * each.work for each in costly if each.work > 1)
        again = (repeats[number] - 1) * work / rates.operations_per_second
        moved = 2 * sum(result.size for result in operator.results)
        if not math.isinf(again) and again > rates.seconds(moved, 1):
            return upper
    return None


def _leading_to(sketch: Sketch, number: int, inside: set[int]) -> set[int]:
    found = {number}
    waiting = [number]
    while waiting:
        operator = sketch.operators[waiting.pop()]
        for producer in (*operator.producers, *operator.followed):
            if producer in inside and producer not in found:
                found.add(producer)
                waiting.append(producer)
    return found
