"""The road of a model: read, tried in several ways, the best one verified and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from relayout.assign.apply import STATE_AS_EINSUM
from relayout.assign.choose import ChooseLayouts
from relayout.assign.formulate import Terms
from relayout.assign.strategies.registry import EXACT, Strategy, strategy_of
from relayout.graph.collector import paused_collector
from relayout.graph.invariants import Signature
from relayout.graph.io.free_interface import free_interface
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import Measure, measure, objective_of
from relayout.optimizer.delivery import Stage, check_names, deliver
from relayout.optimizer.opening import Opener
from relayout.optimizer.pipeline import (
    Checking,
    SpeltOut,
    Timing,
    layouts,
    learn_shapes,
)
from relayout.optimizer.result import Result
from relayout.targets.kernels import check_kernels
from relayout.targets.target import allows_einsum, target_of
from relayout.verify.verdict import NumericOptions

ROUGH = "what rounds otherwise was left out, since quantisers made steps of it"


def optimize(
    source: ModelSource,
    output: str | PathLike[str] | None = None,
    *,
    target: str = "onnx",
    keep: Sequence[str] = (),
    einsum: bool | None = None,
    strategy: str = EXACT,
    minimize: str = "bytes",
    budget: float = 10.0,
    free_inputs: bool = False,
    free_outputs: bool = False,
    opset: int | None = None,
    fix_defaults: bool = False,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    stage: Stage = lambda _: None,
) -> Result:
    """Choose the order of every tensor, compare the numbers, write the result to `output`.

    `keep` selects nodes that stay as they are: by name, `op:LRN`, `rank:3` or `device:cpu`.
    `einsum` lets a product of matrices be stated as Einsum, which reads its factors in any order;
    left open it does so where Transposes are counted and only standard operators may be used.
    `strategy` is the name of a way to choose; only "exact" proves that its choice costs least.
    `minimize` is "bytes" (fewest bytes moved by Transposes) or "count" (fewest Transposes); after
    `budget` seconds of choosing the best found is taken. `free_inputs` and `free_outputs` let the
    orders of the model's own inputs and outputs change; the notices say how. `opset` brings the
    model to a newer opset first: from 23 on Attention is an operator. `fix_defaults` makes
    constants of inputs that have a default, which then are inputs no more.

    Nothing is written if the numbers differ or cannot be compared. A model in which nothing could
    be improved is written as it came, byte for byte.
    """
    inputs = replace(inputs or NumericOptions(), fix_defaults=fix_defaults)
    objective = objective_of(minimize)
    runtime = target_of(target, keep, einsum=allows_einsum(einsum, target, objective))
    terms = Terms(objective, runtime, inputs.dims, free_inputs, free_outputs)
    stage("reading")
    given = load(source)
    opener = Opener(source, opset, fix_defaults, given)
    check_names(given, inputs)
    path = None if output is None else Path(output)

    def attempt(terms: Terms) -> Result:
        stage("optimising")
        with paused_collector():
            result = _best(opener, terms, strategy_of(strategy, budget))
        result = replace(result, fixed_defaults=fix_defaults)
        if not result.changed:
            result = _as_given(result, given, opener)
        return _handed_over(result, path, inputs if verify else None, stage)

    result = attempt(terms)
    for careful in terms.with_care:
        if result.shows_rounding:
            result = attempt(careful)
            result.loaded.notices.append(ROUGH)
    return result


def _as_given(result: Result, given: LoadedModel, opener: Opener) -> Result:
    """The model as it came, after passes in vain; with its defaults fixed where that was asked."""
    kept = opener.fixed(given)
    kept.notices[:] = result.loaded.notices
    return replace(result, loaded=kept, changed=kept is not given, outcomes=())


def _best(opened: Callable[[], LoadedModel], terms: Terms, strategy: Strategy) -> Result:
    """The best result with neither more Transposes nor more bytes moved than the model has.

    Two copies of small tensors may move less than one of a large tensor, or the other way round,
    and an Einsum may copy more than the Transposes it saves. Where that would give the user more
    of one figure, products stay products, and then the other objective decides.
    """
    result = _better_by_factors(opened, terms, strategy)
    if not result.trades:
        return result
    noun, after = terms.objective.noun, result.after
    for others, instead in _fallbacks(result):
        fallback = _better_by_factors(opened, others, strategy)
        fallback.loaded.notices.append(
            f"the fewest {noun} would take {after.transposes} Transposes and {after.bytes_moved} "
            f"bytes, of one of them more than given; so {instead}"
        )
        if not fallback.trades:
            return fallback
    return replace(fallback, changed=False, after=fallback.before)


def _fallbacks(result: Result) -> Iterator[tuple[Terms, str]]:
    """The terms to choose by instead of those of a result, and what that means."""
    terms = result.choose.terms
    if result.applied[STATE_AS_EINSUM]:
        products = replace(terms, target=replace(terms.target, einsum=False))
        yield products, "no product was stated as Einsum"
    other = replace(terms, objective=terms.objective.other)
    yield other, f"the fewest {other.objective.noun} were chosen"


def _better_by_factors(
    opened: Callable[[], LoadedModel], terms: Terms, strategy: Strategy
) -> Result:
    """The better of two: with the axes as they are, and with operators on their factors."""
    result = _improved(opened(), ChooseLayouts(terms, strategy))
    if not result.after.transposes:
        return result
    other = _improved(opened(), ChooseLayouts(terms, strategy), by_factors=True)
    if not other.choose.decisions or other.trades or other.lacking[1] > result.lacking[1]:
        return result
    return other if other.after.better_than(result.after, terms.objective) else result


def _improved(loaded: LoadedModel, choose: ChooseLayouts, *, by_factors: bool = False) -> Result:
    """The model after all passes, not yet verified or written."""
    pipeline = layouts(choose.terms.target, choose, by_factors=by_factors)
    if loaded.frozen is not None:
        loaded.notices.append(f"copied as it is: {loaded.frozen}")
        nothing = Measure(0, 0, 0)
        return Result(loaded, choose, nothing, nothing, (), False, {})
    check_kernels(loaded.ir)
    choose.terms.target.check_gate(loaded.ir)
    learn_shapes(loaded.ir)
    before = measure(loaded.ir, choose.terms.dims)
    lacking = choose.terms.target.lacking(loaded.ir)
    timing, watching = Timing(), SpeltOut(choose.terms.target)
    outcomes = pipeline.run(loaded.ir, [Checking(Signature.of(loaded.ir)), timing, watching])
    after = measure(loaded.ir, choose.terms.dims)
    still = choose.terms.target.lacking(loaded.ir)
    is_better = after.better_than(before, choose.terms.objective)
    changed = still < lacking or (still == lacking and is_better)
    return Result(
        *(loaded, choose, before, after if changed else before, tuple(outcomes), changed),
        timing.seconds,
        lacking=(lacking, still if changed else lacking),
        by_factors=by_factors,
        spelt_out=watching.reasons,
    )


def _handed_over(
    result: Result, output: Path | None, inputs: NumericOptions | None, stage: Stage
) -> Result:
    """Deliver a model; one whose interface may change is verified before that happens."""
    if not result.choose.terms.frees:
        return _delivered(result, output, inputs, stage)
    if inputs is not None:
        result = _delivered(result, None, inputs, stage)
    return _delivered(_freed(result), output, None, stage) if result.accepted else result


def _freed(result: Result) -> Result:
    """The model with the Transposes at its border taken into its interface."""
    terms = result.choose.terms
    if result.loaded.frozen is not None:
        return result
    changes = free_interface(result.loaded, inputs=terms.free_inputs, outputs=terms.free_outputs)
    result.loaded.notices.extend(changes)
    if not changes:
        return result
    return replace(result, after=measure(result.loaded.ir, terms.dims), changed=True)


def _delivered(
    result: Result, output: Path | None, inputs: NumericOptions | None, stage: Stage
) -> Result:
    """Compare the model with the given one, and write it if it is right."""
    delivery = deliver(result.loaded, result.loaded, output, inputs, stage, changed=result.changed)
    return replace(
        result,
        verdict=delivery.verdict or result.verdict,
        output=delivery.output or result.output,
    )
