"""Weighs the results of a second model against those of the first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from relayout.verify.difference import Difference, difference, worse
from relayout.verify.runtimes import RefusedError, Run, Runtime
from relayout.verify.verdict import NumericOptions, NumericVerdict, Worst

if TYPE_CHECKING:
    from pathlib import Path

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface

# How often the first model is run again to learn whether it agrees with itself.
RERUNS = 4
# An error up to this many times the disagreement of the first model with itself is noise.
NOISE_FACTOR = 4.0


@dataclass
class Judge:
    """Runs the second model on the cases of the first, and gathers what they show."""

    runtime: Runtime
    original: Run
    interface: Interface
    options: NumericOptions
    exact: bool = True
    elements: int = 0
    worst: Worst | None = None
    largest: float = -1.0
    unstable: dict[str, None] = field(default_factory=dict)
    failing: dict[str, Difference] = field(default_factory=dict)
    """By output, the largest difference that is not excused."""

    def judge(self, after: Path, cases: list[Case]) -> NumericVerdict:
        try:
            rewritten = self.runtime.load(after, self.interface)
            for case in cases:
                self._weigh(case, rewritten(case.feeds))
        except RefusedError as refusal:
            reason = f"{self.runtime.name} runs only the first model: {refusal}"
            return NumericVerdict("differs", reason=reason, runtime=self.runtime.name)
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
        )

    def _steady(self, cases: list[Case]) -> tuple[str, ...]:
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
        quiet = [Difference() for _ in found]
        noise = quiet if all(one.excused for one in found) else self._noise(case)
        for port, one, own in zip(self.interface.outputs, found, noise, strict=True):
            self.elements += one.elements
            self.exact &= one.exact
            if own.excused:
                passes = one.excused or (one.alike and one.error <= NOISE_FACTOR * own.error)
                self._note(port.name, one, case, passes=passes)
                continue
            self.unstable[port.name] = None
            if own.alike and not one.alike:
                self._note(port.name, one, case, passes=False)

    def _noise(self, case: Case) -> list[Difference]:
        """The largest disagreement of the first model with itself, for each output."""
        noise = [Difference() for _ in case.results]
        for _ in range(RERUNS):
            again = self._differences(case, self.original(case.feeds))
            noise = [worse(*pair) for pair in zip(noise, again, strict=True)]
        return noise

    def _differences(self, case: Case, results: list[Any]) -> list[Difference]:
        pairs = zip(case.results, results, strict=True)
        return [difference(*pair, self.options.tolerance) for pair in pairs]

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
