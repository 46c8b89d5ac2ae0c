"""What users of the package call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import onnx

from relayout.assign.apply import STATE_AS_EINSUM
from relayout.assign.claim import claim, faults
from relayout.assign.formulate import Terms, formulate
from relayout.assign.layouts import ChooseLayouts
from relayout.assign.part import parts_of
from relayout.assign.strategies.registry import EXACT, Strategy, strategy_of
from relayout.collector import paused_collector
from relayout.delivery import Stage, check_names, deliver
from relayout.describe import (
    assumed,
    attention_notes,
    figures,
    held_note,
    layouts_record,
    model_record,
    run_notes,
    transpose_records,
)
from relayout.errors import RelayoutError
from relayout.graph.interface import free_interface
from relayout.graph.invariants import Interface
from relayout.graph.load import load
from relayout.graph.measure import Measure, measure, objective_of
from relayout.graph.model import LoadedModel
from relayout.graph.save import to_proto
from relayout.graph.sources import ModelSource
from relayout.infer.colours import Look
from relayout.opening import Opener, opened
from relayout.pipeline import (
    Checking,
    Outcome,
    SpeltOut,
    Timing,
    layouts,
    learn_shapes,
    local_rules,
    prepared,
)
from relayout.report.layouts import LayoutsRecord
from relayout.report.records import ModelRecord, RunRecord, TransposeRecord
from relayout.targets.kernels import check_kernels
from relayout.targets.target import ONNX, allows_einsum, target_of
from relayout.verify.verdict import NumericOptions, NumericVerdict

NOT_VERIFIED = "not verified, as asked"
SAME_FILE = "the same model"
ROUGH = "what rounds otherwise was left out, since quantisers made steps of it"


@dataclass(frozen=True, slots=True)
class Result:
    """What an optimisation did, and the model it made."""

    loaded: LoadedModel
    choose: ChooseLayouts
    before: Measure
    after: Measure
    outcomes: tuple[Outcome, ...]
    changed: bool
    seconds: Mapping[str, float]
    verdict: NumericVerdict | None = None
    """None where there was nothing to compare, or nobody asked."""
    output: Path | None = None
    """Where the model was written."""
    lacking: tuple[int, int] = (0, 0)
    """Nodes in an order that the target has no kernel for, before and after."""
    by_factors: bool = False
    """Whether operators were let work on the factors of merged axes before the choice."""
    fixed_defaults: bool = False
    """Whether inputs with defaults were to be made constants."""
    spelt_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Why attentions are not raised to operators, with the names of their Softmaxes."""

    @property
    def trades(self) -> bool:
        """Whether one figure grew, on a target that gained nothing else by it."""
        grew = (
            self.after.transposes > self.before.transposes
            or self.after.bytes_moved > self.before.bytes_moved
        )
        # Transposes at a free border are taken into the interface.
        return grew and self.lacking[1] == self.lacking[0] and not self.choose.terms.frees

    @property
    def applied(self) -> Counter[str]:
        """How often each rewrite was applied."""
        return sum((outcome.applied for outcome in self.outcomes), Counter[str]())

    @property
    def accepted(self) -> bool:
        """Whether the model may be used: it is as it was, or verified, or nobody asked."""
        return not self.changed or self.verdict is None or self.verdict.equal

    @property
    def shows_rounding(self) -> bool:
        """Whether other numbers may come from quantisers that made steps of another rounding."""
        differs = self.verdict is not None and self.verdict.status == "differs"
        return differs and any(each.formulation.is_quantised for each in self.choose.decisions)

    @property
    def model(self) -> onnx.ModelProto:
        """The optimised model; the given one where nothing was improved or the verdict is no."""
        if not self.changed or not self.accepted:
            return self.loaded.source
        return to_proto(self.loaded)

    def certificate(self) -> dict[str, Any]:
        """The proof that no other choice of layouts costs less, for `check_certificate`."""
        if not self.choose.proves:
            raise RelayoutError("only the exact strategy proves anything about its choice")
        settings = {
            **self.choose.terms.settings,
            "opset": self.loaded.ir.opset_imports.get(""),
            "fix_defaults": self.fixed_defaults,
            "by_factors": self.by_factors,
        }
        return claim(self.choose.decisions, settings)

    def _verdict_text(self) -> str:
        if not self.changed:
            return SAME_FILE
        if self.verdict is None:
            return NOT_VERIFIED
        if self.verdict.status == "unknown":
            return f"cannot be verified, {self.verdict.reason}; --no-verify writes it all the same"
        return self.verdict.summary()

    def _left(self) -> tuple[TransposeRecord, ...]:
        """The Transposes that stay; none where passes in vain left another model than the given."""
        dims = self.choose.terms.dims
        if self.loaded.frozen is not None:
            return ()
        if not self.changed and measure(self.loaded.ir, dims) != self.before:
            return ()
        return transpose_records(self.loaded.ir, dims, target=self.choose.terms.target)

    def record(self) -> RunRecord:
        """What there is to tell."""
        left = self._left()
        applied = self.applied if self.changed else Counter[str]()
        spelt_out = self.spelt_out if self.after.transposes else {}
        notes = run_notes(self.loaded.ir, bool(left), applied, spelt_out)
        if self.loaded.frozen is None:
            notes += held_note(self.loaded.ir, self.choose.terms.target)
        dims = self.choose.terms.dims
        return RunRecord(
            source="" if self.loaded.path is None else str(self.loaded.path),
            output=None if self.output is None else str(self.output),
            target=self.choose.terms.target.name,
            before=figures(self.before),
            after=figures(self.after),
            changed=self.changed,
            applied=dict(applied),
            left=left,
            assumed=assumed(self.loaded, dims),
            notices=(*self.loaded.notices, *self.choose.notes, *notes),
            verdict=self._verdict_text(),
            verified=not self.changed or (self.verdict is not None and self.verdict.equal),
            optimal=self.choose.optimal,
            seconds=dict(self.seconds),
            lacking=self.lacking,
        )


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


def inspect(source: ModelSource, *, dims: Mapping[str, int] | None = None) -> ModelRecord:
    """The interface, the operators and the Transposes of a model."""
    loaded = opened(source)
    record = model_record(loaded, dims or {})
    if not record.transposes:
        return record
    watching = SpeltOut(ONNX)
    local_rules(ONNX).run(loaded.ir, [watching])
    return replace(record, notices=(*record.notices, *attention_notes(watching.reasons)))


def infer_layouts(source: ModelSource, *, look: str = "before") -> LayoutsRecord:
    """The layout of every tensor, inferred from the operators that tell.

    Where a Reshape or its like starts something new that nothing behind it names, `look` says
    which known operator tells: "before" (it is no longer what came in), "after" or "nearest".
    """
    known = [each.value for each in Look]
    if look not in known:
        raise RelayoutError(f"one can look {', '.join(known)}, not {look!r}")
    return layouts_record(opened(source), Look(look))


def count(source: ModelSource, *, dims: Mapping[str, int] | None = None) -> Measure:
    """How many Transposes a model has, what they move, and how many nodes there are."""
    return measure(opened(source).ir, dims)


def check_certificate(document: Any, model: ModelSource | None = None) -> list[str]:
    """What is wrong with a certificate; nothing if it holds.

    With the given model at hand, its layout problems are stated anew and must be the certified
    ones; without it only the proofs themselves are checked.
    """
    if model is None:
        return faults(document)
    settings = document.get("settings") if isinstance(document, dict) else None
    if not isinstance(settings, dict):
        return ["the certificate does not say under which settings it was made"]
    opset, fixes = settings.get("opset"), settings.get("fix_defaults") is True
    loaded = opened(model, opset=opset if isinstance(opset, int) else None, fix_defaults=fixes)
    terms = Terms.of_settings(settings)
    learn_shapes(loaded.ir)
    prepared(terms.target, by_factors=settings.get("by_factors") is True).run(loaded.ir)
    problems = [formulate(part, terms).problem for part in parts_of(loaded.ir)]
    return faults(document, problems)


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
    outcomes = pipeline.run(loaded.ir, [Checking(Interface.of(loaded.ir)), timing, watching])
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
