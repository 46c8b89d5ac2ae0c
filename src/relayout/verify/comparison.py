"""The verdict on two models in given cases: compared, and looked into where they differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from relayout.verify.conditioning import of_model
from relayout.verify.decisions import decisive
from relayout.verify.difference import MOST_NOISE, MOST_NOISE_OF_DECISIONS
from relayout.verify.forced import SharedFlow, Way, force
from relayout.verify.judge import Judge
from relayout.verify.replay import Replay
from relayout.verify.rounding import Doubt
from relayout.verify.runtimes import (
    ONNX_RUNTIME,
    ExhaustedError,
    RefusedError,
    Run,
    Runtime,
    derived,
    read,
    seen,
)
from relayout.verify.verdict import NumericOptions, NumericVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface
    from relayout.verify.runtimes import Runnable

MOST_CASES = 3
"""The inputs on which a forced way is tried until the given model goes it."""


@dataclass(frozen=True)
class Comparison:
    runtime: Runtime
    interface: Interface
    options: NumericOptions

    def verdict(
        self, original: Run, before: Runnable, after: Runnable, cases: Sequence[Case]
    ) -> NumericVerdict:
        """Where results of ONNX Runtime differ, rounding and decisions may explain it.

        `original` runs the first model, and has run it on the cases.
        """
        most = MOST_NOISE_OF_DECISIONS if decisive(seen(before)) else MOST_NOISE
        noise = of_model(original, before, self.interface, most=most)
        judge = Judge(self.runtime, original, self.interface, self.options, noise)
        verdict = judge.judge(after, cases)
        if verdict.status != "differs" or verdict.reason or self.runtime is not ONNX_RUNTIME:
            return verdict
        doubt = Doubt(before, after, self.interface, self.options, cases, judge.failing)
        verdict = doubt.weighed(verdict)
        if verdict.equal:
            return verdict
        replay = Replay(before, after, self.interface, self.options, judge.failed)
        return replay.weighed(verdict)

    def on_all_ways(
        self,
        before: Runnable,
        after: Runnable,
        cases: Sequence[Case],
        verdict: NumericVerdict,
    ) -> NumericVerdict:
        """The verdict, once both models are forced through branches and loops."""
        flow = SharedFlow.of(seen(before), seen(after))
        waiting = flow.ways()
        for way in waiting:
            found = self._on_way(way, before, after, cases)
            if found is None:
                waiting += [part for part in flow.alone(way) if part not in waiting]
                continue
            if found.status == "differs":
                return replace(found, under=way.label)
            verdict = replace(
                verdict,
                forced=(*verdict.forced, way.label),
                elements=verdict.elements + found.elements,
                runs=verdict.runs + found.runs,
            )
        return verdict

    def _on_way(
        self, way: Way, before: Runnable, after: Runnable, cases: Sequence[Case]
    ) -> NumericVerdict | None:
        """What a way shows, on the first inputs with which the given model goes it."""
        given, made = (derived(force(read(one), way), one) for one in (before, after))
        try:
            run = self.runtime.load(given, self.interface)
            case = _first_case(run, cases)
        except (RefusedError, ExhaustedError):
            return None
        return self.verdict(run, given, made, [case])


def _first_case(run: Run, cases: Sequence[Case]) -> Case:
    """The first inputs that a model takes; the second case has normal numbers, which show more."""
    refusal = RefusedError("there is nothing to try")
    for case in cases[1 : 1 + MOST_CASES] or cases:
        try:
            return replace(case, results=run(case.feeds))
        except RefusedError as error:
            refusal = error
    raise refusal
