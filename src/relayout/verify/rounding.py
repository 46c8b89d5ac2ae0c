"""Whether two models with quantisers differ by nothing but rounding.

A quantiser turns a rounding error in a sum into a whole step. So results that differ are compared
again: the models must agree as usual where nothing is rounded (`verify/smooth.py`), have the same
quantisers, and differ by no more than the first model does between two optimisation levels of ONNX
Runtime.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from relayout.verify.difference import STRICT, Difference, Tolerance, difference, worse
from relayout.verify.judge import Judge
from relayout.verify.quantisers import quantisers_of
from relayout.verify.runtimes import (
    EXTENDED,
    SMOOTH,
    ExhaustedError,
    RefusedError,
    folder_of,
    read,
)
from relayout.verify.verdict import NumericOptions, NumericVerdict, Rounding

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface
    from relayout.verify.quantisers import Grid
    from relayout.verify.runtimes import Runnable


class _NotRoundingError(Exception):
    """Why a difference is more than rounding, or may be."""


@dataclass(frozen=True)
class Doubt:
    """Two models, what the first one gives, and the outputs on which the second one differs."""

    before: Runnable
    after: Runnable
    interface: Interface
    options: NumericOptions
    cases: Sequence[Case]
    failing: Mapping[str, Difference]

    def weighed(self, verdict: NumericVerdict) -> NumericVerdict:
        """The verdict on the two models, which is that they are equal if only rounding differs."""
        try:
            if not _quantisers(self.before):
                return verdict
            rounding = self._rounding()
        except (_NotRoundingError, RefusedError, ExhaustedError) as error:
            return replace(verdict, not_rounding=str(error))
        return replace(verdict, status="equal", rounding=rounding)

    def _rounding(self) -> Rounding:
        if _quantisers(self.before) != _quantisers(self.after):
            raise _NotRoundingError("the quantisers are not the same")
        self._check_smooth()
        noise = self._noise()
        for output, found in self.failing.items():
            own = noise[output].error
            if not math.isfinite(found.error):
                raise _NotRoundingError(f"no tolerance lets output '{output}' pass")
            if found.error > own + found.allowed:
                raise _NotRoundingError(
                    f"output '{output}' differs by {found.error:.1e}, "
                    f"where ONNX Runtime's own levels differ by {own:.1e}"
                )
        output, found = max(self.failing.items(), key=lambda item: item[1].error)
        return Rounding(found.error, noise[output].error)

    def _check_smooth(self) -> None:
        """See that both models compute the same where nothing is rounded."""
        original = SMOOTH.load(self.before, self.interface)
        cases = [replace(case, results=original(case.feeds)) for case in self.cases]
        judge = Judge(SMOOTH, original, self.interface, self.options)
        verdict = judge.judge(self.after, cases)
        if not verdict.equal:
            raise _NotRoundingError(f"without rounding {verdict.reason or verdict.worst}")
        for output in (*verdict.unstable, *verdict.steady):
            if output in self.failing:
                raise _NotRoundingError(f"without rounding output '{output}' proves nothing")

    def _noise(self) -> dict[str, Difference]:
        """By output, how much the first model differs between the levels of ONNX Runtime."""
        extended = EXTENDED.load(self.before, self.interface)
        noise = {port.name: Difference() for port in self.interface.outputs}
        for case in self.cases:
            for name, one, other in zip(noise, case.results, extended(case.feeds), strict=True):
                found = difference(one, other, Tolerance(STRICT, self.options.tolerance))
                if not found.alike:
                    raise _NotRoundingError(f"ONNX Runtime's own levels disagree about '{name}'")
                noise[name] = worse(noise[name], found)
        return noise


def _quantisers(source: Runnable) -> Counter[Grid]:
    return quantisers_of(read(source), folder_of(source))
