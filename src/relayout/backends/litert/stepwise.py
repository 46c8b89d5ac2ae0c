"""Files that compute on bytes, compared with a quantised model in the steps of its quantisers.

Sums of bytes are exact in LiteRT, and floats between quantisers in ONNX Runtime are not, unless it
computes on bytes too: a quantiser makes a step of the difference. So results count as equal where
almost all elements lie within one step of what ONNX Runtime computes at one of its levels. Results
that lie on no steps are those of the last bytes (`last_bytes.py`), or as near as levels to another.
Where steps add up to more on the way, each part is compared by itself (`parts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from relayout.backends.litert.last_bytes import FloatTail, LastBytes, exposed, same
from relayout.backends.litert.parts import PartComparison
from relayout.backends.litert.steps import WITHIN, wide, within
from relayout.verify.cases import Case, CaseFinder
from relayout.verify.interface import Interface, interface_of
from relayout.verify.runtimes import EXTENDED, ONNX_RUNTIME, RefusedError, Run, read
from relayout.verify.verdict import NumericOptions, NumericVerdict, WithinSteps


@dataclass(frozen=True, slots=True)
class StepComparison:
    """A written file against ONNX Runtime."""

    given: Path
    run: Run
    steps: Mapping[str, float]
    """By output; 0 where the numbers of an output lie on no steps."""
    options: NumericOptions
    fixed: bool
    last: LastBytes | None = None
    run_to_last: Run | None = None
    """Runs the file that gives its last bytes too."""
    by_parts: PartComparison | None = None

    def verdict(self, differs: NumericVerdict) -> NumericVerdict:
        """Equal up to steps, or else what was found before."""
        interface = interface_of(self.given)
        if self.fixed:
            interface = interface.without_defaults()
        try:
            found = self._found(interface)
        except RefusedError:
            return differs
        if found.share < WITHIN:
            return replace(differs, not_rounding=found.shortfall)
        return replace(differs, status="equal", reason="", worst=None, within_steps=found)

    def _found(self, interface: Interface) -> WithinSteps:
        """What lies within steps: results, or else what the last bytes or all parts give."""
        least = max(map(min, self._shares(interface)), default=0.0)
        if least < WITHIN:
            least = max(least, self._least_at_last(interface))
        if least >= WITHIN or self.by_parts is None:
            return WithinSteps(least)
        exact = ONNX_RUNTIME.load(self.given, interface)
        of_parts = self.by_parts.least(lambda dims: self._cases(exact, interface, dims), interface)
        return WithinSteps(of_parts, self.by_parts.count, least)

    def _shares(self, interface: Interface) -> list[list[float]]:
        """For each level of ONNX Runtime, the share of elements within a step, by output."""
        levels = [each.load(self.given, interface) for each in (EXTENDED, ONNX_RUNTIME)]
        cases = self._cases(levels[1], interface)
        found = [self._within(case, [level(case.feeds) for level in levels]) for case in cases]
        return [
            [min(shares) for shares in zip(*of_level, strict=True)]
            for of_level in zip(*found, strict=True)
        ]

    def _least_at_last(self, interface: Interface) -> float:
        """As the least share, of the last bytes and of outputs on steps; 0 if the rest differs."""
        if self.last is None or self.run_to_last is None:
            return 0.0
        names = list(self.last.steps)
        tail = FloatTail.of(self.given, names, interface)
        if tail is None:
            return 0.0
        whole = exposed(self.given, names)
        levels = [each.load(whole, interface) for each in (EXTENDED, ONNX_RUNTIME)]
        steps = [*self.steps.values(), *self.last.steps.values()]
        least = [1.0] * len(levels)
        for case in self._cases(levels[1], interface):
            found = self.run_to_last(case.feeds)
            results, last = found[: len(self.steps)], found[len(self.steps) :]
            is_same = same(results, self.run(case.feeds))
            if not is_same or not tail.agrees(case.feeds, results, last, self.options.tolerance):
                return 0.0
            for place, level in enumerate(levels):
                parts = zip(found, level(case.feeds), steps, strict=True)
                shares = [within(*part) for part in parts if part[2]]
                least[place] = min(least[place], *shares)
        return max(least)

    def _cases(
        self, exact: Run, interface: Interface, dims: Mapping[str, int] | None = None
    ) -> Sequence[Case]:
        options = replace(self.options, dims={**self.options.dims, **(dims or {})})
        return CaseFinder(exact, interface, options, read(self.given)).find()

    def _within(self, case: Case, wanted: Sequence[Sequence[Any]]) -> list[list[float]]:
        results = self.run(case.feeds)
        bounds = [
            step or float(np.max(np.abs(wide(one) - wide(other)), initial=0.0))
            for step, one, other in zip(self.steps.values(), *wanted, strict=True)
        ]
        return [
            [within(*part) for part in zip(results, level, bounds, strict=True)] for level in wanted
        ]
