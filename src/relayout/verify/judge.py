"""Weighs the results of a second model against those of the first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from relayout.verify.cases import has_elements
from relayout.verify.conditioning import Conditioning, of_run
from relayout.verify.difference import (
    STRICT,
    Difference,
    Noise,
    Tolerance,
    difference,
    widened,
    worse,
)
from relayout.verify.runtimes import RefusedError, Run, Runtime
from relayout.verify.verdict import NOTHING, NumericOptions, NumericVerdict, Worst

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface
    from relayout.verify.runtimes import Runnable

# How often the first model is run again to learn whether it agrees with itself.
RERUNS = 4


@dataclass
class Judge:
    """Runs the second model on the cases of the first, and gathers what they show.

    `tolerances`: the errors by type, relative to an element's scale, that need no explanation;
    `conditioning`: how much rounding changes what the first model gives.
    """

    runtime: Runtime
    original: Run
    interface: Interface
    options: NumericOptions
    conditioning: Conditioning | None = None
    tolerances: Mapping[str, float] = field(default_factory=lambda: STRICT)
    exact: bool = True
    elements: int = 0
    worst: Worst | None = None
    largest: float = -1.0
    unstable: dict[str, None] = field(default_factory=dict)
    failing: dict[str, Difference] = field(default_factory=dict)
    """By output, the largest difference that is not excused."""
    failed: list[Case] = field(default_factory=list)
    """The cases of which a result differs."""

    def judge(self, after: Runnable, cases: Sequence[Case]) -> NumericVerdict:
        try:
            rewritten = self.runtime.load(after, self.interface)
            for case in cases:
                self._weigh(case, rewritten(case.feeds))
        except RefusedError as refusal:
            reason = f"{self.runtime.name} runs only the first model: {refusal}"
            return NumericVerdict("differs", reason=reason, runtime=self.runtime.name)
        if not self.elements and not self.failing:
            return replace(self._verdict(cases), status="unknown", reason=NOTHING)
        return self._verdict(cases)

    def _verdict(self, cases: Sequence[Case]) -> NumericVerdict:
        return NumericVerdict(
            "differs" if self.failing else "equal",
            exact=self.exact,
            worst=self.worst,
            runtime=self.runtime.name,
            outputs=len(self.interface.outputs),
            elements=self.elements,
            runs=len(cases),
            bindings=tuple({str(case.binding): case.binding for case in cases}.values()),
            unstable=tuple(self.unstable),
            steady=self._steady(cases),
            empty=self._empty(cases),
            failing=tuple(self.failing),
        )

    def _empty(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """The outputs of which no case has an element."""
        return tuple(
            port.name
            for i, port in enumerate(self.interface.outputs)
            if not any(has_elements(case.results[i]) for case in cases)
        )

    def _steady(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """The outputs that different inputs of the same sizes do not change."""
        pairs = [pair for pair in pairwise(cases) if pair[0].binding == pair[1].binding]
        changes = [self._differences(first, second.results) for first, second in pairs]
        return tuple(
            port.name
            for i, port in enumerate(self.interface.outputs)
            if pairs and all(change[i].excused for change in changes)
        )

    def _weigh(self, case: Case, results: list[Any]) -> None:
        found = self._differences(case, results)
        own = [Difference() for _ in found]
        if not all(one.excused for one in found):
            own = self._own(case)
            found = self._with_noise(case, results, found, own)
        if any(unsure.excused and not one.excused for one, unsure in zip(found, own, strict=True)):
            self.failed.append(case)
        for port, one, unsure in zip(self.interface.outputs, found, own, strict=True):
            self.elements += one.elements
            self.exact &= one.exact
            if unsure.excused:
                self._note(port.name, one, case, passes=one.excused)
                continue
            self.unstable[port.name] = None
            if unsure.alike and not one.alike:
                self._note(port.name, one, case, passes=False)

    def _own(self, case: Case) -> list[Difference]:
        """The largest disagreement of the first model with itself, for each output."""
        own = [Difference() for _ in case.results]
        for _ in range(RERUNS):
            again = self._differences(case, self.original(case.feeds))
            own = [worse(*pair) for pair in zip(own, again, strict=True)]
            if all(one.exact for one in own):
                break
        return own

    def _with_noise(
        self, case: Case, results: list[Any], found: list[Difference], own: list[Difference]
    ) -> list[Difference]:
        """The differences, once it is known how much of them rounding explains."""
        conditioning = self.conditioning or of_run(self.original)
        noise: list[Noise] = [None] * len(found)
        wholes = [float(port.name in conditioning.tails) for port in self.interface.outputs]
        for other in conditioning.results(case.feeds):
            parts = zip(noise, case.results, other, wholes, strict=True)
            noise = [
                widened(known, one, another, conditioning.most, whole)
                for known, one, another, whole in parts
            ]
            found = self._differences(case, results, noise)
            pairs = zip(found, own, strict=True)
            if all(one.excused or not unsure.excused for one, unsure in pairs):
                break
        return found

    def _differences(
        self, case: Case, results: list[Any], noise: Sequence[Noise] | None = None
    ) -> list[Difference]:
        tolerance = Tolerance(self.tolerances, self.options.tolerance)
        known = noise or [None] * len(results)
        parts = zip(case.results, results, known, strict=True)
        return [difference(one, other, tolerance, own) for one, other, own in parts]

    def _note(self, output: str, found: Difference, case: Case, *, passes: bool) -> None:
        """Keeps the worst element: a failing one before a passing one, then the larger error."""
        known = bool(self.failing), self.largest
        if not passes:
            self.failing[output] = worse(self.failing.get(output, found), found)
        if found.exact or (not passes, found.error) <= known:
            return
        self.largest = found.error
        finite = math.isfinite(found.error)
        self.worst = Worst(
            output=output + found.place,
            index=found.index,
            before=found.before,
            after=found.after,
            error=found.error if finite else None,
            passes_at=_rounded_up(found.error) if finite else None,
            binding=case.binding,
            draw=case.draw.label,
        )


def _rounded_up(error: float) -> float:
    """The error with two digits, never below it."""
    if error == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    return math.ceil(error / unit) * unit
