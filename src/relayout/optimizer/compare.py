"""Every strategy on the same model, through the same passes and the same verification."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from relayout.assign.assignment import Assignment
from relayout.assign.choose import ChooseLayouts, Decision
from relayout.assign.formulate import Terms
from relayout.assign.problem import LayoutProblem, copies
from relayout.assign.strategies.naive import isolating_copies
from relayout.assign.strategies.regions import count_regions
from relayout.assign.strategies.registry import ISOLATING, STRATEGIES, Strategy, strategy_of
from relayout.graph.collector import paused_collector
from relayout.graph.invariants import Signature
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import staged
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import measure, objective_of
from relayout.optimizer.delivery import check_names, compared
from relayout.optimizer.describe import figures
from relayout.optimizer.opening import Opener, opened
from relayout.optimizer.pipeline import Checking, layouts, learn_shapes
from relayout.report.comparison import ComparisonRecord, StrategyRecord
from relayout.report.records import Figures
from relayout.targets.target import allows_einsum, target_of
from relayout.verify.verdict import NumericOptions, NumericVerdict


def compare_strategies(
    source: ModelSource,
    *,
    target: str = "onnx",
    keep: Sequence[str] = (),
    einsum: bool | None = None,
    minimize: str = "bytes",
    budget: float = 10.0,
    fix_defaults: bool = False,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    stage: Callable[[str], None] = lambda _: None,
) -> ComparisonRecord:
    """What each strategy makes of a model, even where that is worse than the model as given."""
    inputs = replace(inputs or NumericOptions(), fix_defaults=fix_defaults)
    objective = objective_of(minimize)
    runtime = target_of(target, keep, einsum=allows_einsum(einsum, target, objective))
    terms = Terms(objective, runtime, inputs.dims)
    stage("reading")
    opener = Opener(source, fix_defaults=fix_defaults)
    given = opened(source, fix_defaults=fix_defaults)
    learn_shapes(given.ir)
    terms.target.check_gate(given.ir)
    check_names(given, inputs)
    before = figures(measure(given.ir, terms.dims))
    records, bound = [], 0
    for name in STRATEGIES:
        stage(name)
        watch = _Stopwatch(strategy_of(name, budget))
        loaded, decisions = _laid_out(opener, terms, watch)
        verdict = _verdict(loaded, inputs) if verify else None
        left = figures(measure(loaded.ir, terms.dims))
        records.append(_record(name, decisions, left, watch.seconds, verdict))
        # Only the exact strategy proves more than that nothing costs less than nothing.
        bound = max(bound, sum(decision.assignment.bound for decision in decisions))
    path = "" if given.path is None else str(given.path)
    return ComparisonRecord(path, target, before, tuple(records), bound)


def _record(
    name: str,
    decisions: Sequence[Decision],
    left: Figures,
    seconds: float,
    verdict: NumericVerdict | None,
) -> StrategyRecord:
    problems = [(d.formulation.problem, d.assignment.choice) for d in decisions]
    return StrategyRecord(
        name,
        inserted=sum(_inserted(name, problem, choice) for problem, choice in problems),
        regions=sum(count_regions(problem, choice) for problem, choice in problems),
        left=left,
        cost=sum(decision.assignment.cost for decision in decisions),
        seconds=seconds,
        verified=verdict is not None and verdict.equal,
        numbers="not verified" if verdict is None else verdict.status,
        verdict="" if verdict is None else verdict.summary(),
    )


def _inserted(name: str, problem: LayoutProblem, choice: Sequence[int]) -> int:
    if name in ISOLATING:
        return isolating_copies(problem, choice)
    return len(copies(problem, choice))


@dataclass(slots=True)
class _Stopwatch:
    """A strategy that knows how long it took."""

    strategy: Strategy
    seconds: float = 0.0

    def __call__(self, problem: LayoutProblem) -> Assignment:
        since = time.perf_counter()
        assignment = self.strategy(problem)
        self.seconds += time.perf_counter() - since
        return assignment


def _laid_out(
    opener: Opener, terms: Terms, strategy: Strategy
) -> tuple[LoadedModel, list[Decision]]:
    loaded = opener()
    learn_shapes(loaded.ir)
    choose = ChooseLayouts(terms, strategy, writes_worse=True)
    with paused_collector():
        layouts(terms.target, choose).run(loaded.ir, [Checking(Signature.of(loaded.ir))])
    return loaded, choose.decisions


def _verdict(loaded: LoadedModel, inputs: NumericOptions) -> NumericVerdict:
    with TemporaryDirectory(prefix="relayout-") as folder:
        place = Path(folder) / "after.onnx"
        with staged(loaded, place, changed=True) as file:
            return compared(loaded, file, inputs, Path(folder))
