"""Every strategy on the same model, through the same passes and the same verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from relayout.assign.choose import ChooseLayouts, Decision
from relayout.assign.problem import LayoutProblem, copies
from relayout.assign.strategies.naive import isolating_copies
from relayout.assign.strategies.regions import connected_runs
from relayout.assign.strategies.registry import (
    DEFAULT_SECONDS,
    STRATEGIES,
    Budget,
    Solver,
    Strategy,
)
from relayout.assign.terms import Terms
from relayout.graph.collector import paused_collector
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import staged
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import Objective, measure
from relayout.optimizer.delivery import check_names, compared
from relayout.optimizer.describe import figures
from relayout.optimizer.pipeline import Checking, chosen
from relayout.optimizer.prepare import Prepared, opened, prepare
from relayout.optimizer.region_records import region_records
from relayout.report.comparison import ComparisonRecord, StrategyRecord
from relayout.report.records import Figures
from relayout.targets.target import ONNX, Target, asked_objective, target_of
from relayout.verify.verdict import NumericOptions, NumericVerdict


def compare_strategies(
    source: ModelSource,
    *,
    target: str | Target = ONNX,
    keep: Sequence[str] = (),
    einsum: bool | None = None,
    minimize: str | Objective | None = None,
    budget: float = DEFAULT_SECONDS,
    fix_defaults: bool = False,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    regions: bool = False,
    stage: Callable[[str], None] = lambda _: None,
) -> ComparisonRecord:
    """What each strategy makes of a model, even where that is worse than the model as given.

    With `regions`, strategies that go by regions list them: members, layout, borders, and why each
    was flipped or kept.
    """
    inputs = replace(inputs or NumericOptions(), fix_defaults=fix_defaults)
    objective = asked_objective(target, minimize)
    runtime = target_of(target, keep, einsum=einsum, objective=objective)
    terms = Terms(objective, runtime, inputs.dims)
    stage("reading")
    given = opened(source, fix_defaults=fix_defaults)
    check_names(given, inputs)
    runtime.check_gate(given.ir)
    with paused_collector():
        prepared = prepare(given, runtime, inputs.dims)
    records, bound = [], 0
    for name in STRATEGIES:
        stage(name)
        strategy = STRATEGIES[name]
        watch = Budget(budget)
        loaded, decisions = _laid_out(prepared, terms, watch.within(strategy))
        verdict = _verdict(given, loaded, inputs) if verify else None
        left = figures(measure(loaded.ir, terms.dims))
        record = _record(strategy, decisions, left, watch.spent, verdict)
        listed = [each for decision in decisions for each in region_records(decision)]
        records.append(replace(record, listed=tuple(listed)) if regions else record)
        # Strategies other than the exact one have the bound 0.
        bound = max(bound, sum(decision.assignment.bound for decision in decisions))
    path = "" if given.path is None else str(given.path)
    return ComparisonRecord(path, runtime.name, figures(prepared.before), tuple(records), bound)


def _record(
    strategy: Strategy,
    decisions: Sequence[Decision],
    left: Figures,
    seconds: float,
    verdict: NumericVerdict | None,
) -> StrategyRecord:
    problems = [(d.formulation.problem, d.assignment.choice) for d in decisions]
    return StrategyRecord(
        strategy.name,
        inserted=sum(_inserted(strategy, problem, choice) for problem, choice in problems),
        regions=sum(len(connected_runs(problem, choice)) for problem, choice in problems),
        left=left,
        cost=sum(decision.assignment.cost for decision in decisions),
        seconds=seconds,
        verified=verdict is not None and verdict.equal,
        numbers="not verified" if verdict is None else verdict.status,
        verdict="" if verdict is None else verdict.summary(),
        method=strategy.method,
    )


def _inserted(strategy: Strategy, problem: LayoutProblem, choice: Sequence[int]) -> int:
    if strategy.isolates:
        return isolating_copies(problem, choice)
    return len(copies(problem, choice))


def _laid_out(
    prepared: Prepared, terms: Terms, solver: Solver
) -> tuple[LoadedModel, list[Decision]]:
    loaded = prepared.simplified.clone()
    choose = ChooseLayouts(terms, solver, writes_worse=True)
    with paused_collector():
        chosen(terms.target, choose).run(loaded.ir, [Checking(prepared.interface)])
    return loaded, choose.decisions


def _verdict(given: LoadedModel, loaded: LoadedModel, inputs: NumericOptions) -> NumericVerdict:
    with TemporaryDirectory(prefix="relayout-") as folder:
        place = Path(folder) / "after.onnx"
        with staged(loaded, place, changed=True) as file:
            return compared(given, file, inputs, Path(folder))
