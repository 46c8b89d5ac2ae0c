"""Passes as values, a pipeline as data, and observers that look on from outside."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import onnx_ir as ir

from relayout.assign.terms import Terms
from relayout.graph.editing.naming import name_transposes
from relayout.graph.invariants import Signature, check
from relayout.ops.measure import moving_transposes
from relayout.report.trace import Span
from relayout.rewrite.atoms import MOST_AXES, JoinReshapes, RaiseSplit, SinkMerge
from relayout.rewrite.attention import JoinHeads, RaiseAttention
from relayout.rewrite.attention_left import spelt_out
from relayout.rewrite.before_resize import ProductBeforeResize
from relayout.rewrite.beside import BiasBesideProduct
from relayout.rewrite.block_moves import FindBlockMove, TakeInBlockMove
from relayout.rewrite.chains import CanonicalChain
from relayout.rewrite.dead import remove_dead
from relayout.rewrite.einsum import FoldIntoEinsum
from relayout.rewrite.factors import QuantisedMatrix
from relayout.rewrite.folding import FoldConstants
from relayout.rewrite.idle import DropIdle
from relayout.rewrite.kept_rows import KeepRowsApart
from relayout.rewrite.kernel_weights import store_weights
from relayout.rewrite.learn_shape import LearnShape
from relayout.rewrite.matmul import ExchangeWithVector, FoldIntoGemm, FoldIntoMatMul
from relayout.rewrite.product_reshapes import ReshapeOutsideProduct
from relayout.rewrite.refine import adopt_shapes, has_vague_moves, refine_shapes
from relayout.rewrite.slow_transposes import DropUnitAxes, SplitSlowTranspose
from relayout.rewrite.sparing import sparing
from relayout.rewrite.splits import GroupTransposedLegs
from relayout.rewrite.stated import StateForInference
from relayout.rewrite.transposes import ComposeChain, DropIdentity, FoldConstant, ShareEqual
from relayout.rewrite.unit_axes import ShareButForUnitAxes, UnitAxisMoveToReshape
from relayout.rewrite.worklist import Rewrite, rewrite_model
from relayout.targets.kernels import define_kernels
from relayout.targets.target import Target

RAISE_ATTENTIONS = "raise attentions"
CHOICE = "choose layouts"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one pass did: how often each rewrite was applied."""

    name: str
    applied: Counter[str]

    @property
    def changed(self) -> bool:
        return self.applied.total() > 0


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step that edits a model in place and counts what it did."""

    name: str
    apply: Callable[[ir.Model], Counter[str]]

    def run(self, model: ir.Model) -> Outcome:
        return Outcome(self.name, self.apply(model))


NAMING = Pass("name Transposes", name_transposes)


class Observer(Protocol):
    """Watches a pipeline as it runs; passes do not know of it."""

    def before(self, step: Pass, model: ir.Model) -> None: ...

    def after(self, outcome: Outcome, model: ir.Model) -> None: ...


@dataclass(frozen=True, slots=True)
class Followed:
    """A pass, and what is worth running only if it did something."""

    first: Pass
    then: tuple[PipelineStep, ...]


PipelineStep: TypeAlias = Pass | Followed


@dataclass(frozen=True, slots=True)
class Pipeline:
    steps: tuple[PipelineStep, ...]

    def run(self, model: ir.Model, observers: Sequence[Observer] = ()) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for step in self.steps:
            if isinstance(step, Pass):
                outcomes.append(_observed(step, model, observers))
                continue
            outcome = _observed(step.first, model, observers)
            outcomes.append(outcome)
            if outcome.changed:
                outcomes += Pipeline(step.then).run(model, observers)
        return outcomes


def _observed(step: Pass, model: ir.Model, observers: Sequence[Observer]) -> Outcome:
    for observer in observers:
        observer.before(step, model)
    outcome = step.run(model)
    for observer in observers:
        observer.after(outcome, model)
    return outcome


def local_rules(target: Target) -> Pipeline:
    """What comes before a choice of layouts: nothing dead, no chain of Transposes.

    Products are left as they are: the choice of layouts knows more ways to write them.
    """
    store = Pass("store weights", lambda model: store_weights(model, target))
    shaped = _with_shapes(_rules(target, lambda: simplifying(target))).steps
    return Pipeline((store, *shaped, *_before_resizing(target), *_attentions(target), NAMING))


def learn_shapes(model: ir.Model) -> ir.Model:
    """Give a model the shapes that are known once the arithmetic on them is folded.

    So the bytes it moves are counted with the same knowledge as those of its result. Returns the
    folded model, or a clone where there was nothing to learn.
    """
    folded = model.clone()
    if has_vague_moves(model):
        _with_shapes((Pass("fold shapes", _fold_shapes),)).run(folded)
        adopt_shapes(model, folded)
    return folded


def _fold_shapes(model: ir.Model) -> Counter[str]:
    return rewrite_model(model, (FoldConstants(), FoldConstant(leaves_tied=True), LearnShape()))


def layouts(
    target: Target, choose: Callable[[ir.Model], Counter[str]], *, by_factors: bool = False
) -> Pipeline:
    """The local rules, then a choice of layouts for the whole model, then the local rules again."""
    rest = chosen(target, choose, by_factors=by_factors)
    return Pipeline((*local_rules(target).steps, *rest.steps))


def chosen(
    target: Target, choose: Callable[[ir.Model], Counter[str]], *, by_factors: bool = False
) -> Pipeline:
    """What follows the local rules: a choice of layouts, and the local rules again.

    `by_factors`: on a model whose operators work on the factors of merged axes, where they can.
    """
    choice = (
        Pass(CHOICE, choose),
        Pass("define kernels", define_kernels),
        *_local_rules(target),
        *_before_resizing(target),
        *_last_rules(target),
        NAMING,
    )
    if not by_factors:
        return Pipeline(choice)
    return Pipeline((Followed(_split_axes(target), (_simplified(target), *choice)),))


def prepared(target: Target, *, by_factors: bool) -> Pipeline:
    """What `layouts` does before the choice."""
    split = (Followed(_split_axes(target), (_simplified(target),)),) if by_factors else ()
    return Pipeline((*local_rules(target).steps, *split))


def split_axes(model: ir.Model, target: Target) -> bool:
    """Bring a model to the factors of its axes, as before a choice; whether there were any."""
    split = Followed(_split_axes(target), (_simplified(target),))
    return Pipeline((split,)).run(model)[0].changed


def _split_axes(target: Target) -> Pass:
    """Operators on the factors of axes that Reshapes merge and split.

    Chains of views are not shortened before the choice: they would be merged again.
    """
    most = MOST_AXES if target.max_rank is None else min(target.max_rank, MOST_AXES)
    rewrites = (*sparing(target.gate, SinkMerge(most), RaiseSplit(most)), JoinReshapes())
    return Pass("split axes into factors", lambda model: rewrite_model(model, rewrites))


def _with_shapes(rules: tuple[PipelineStep, ...]) -> Pipeline:
    """Some rules, and again after each time that folding has made more shapes known."""
    learn = Pass("learn shapes", refine_shapes)
    return Pipeline((*rules, Followed(learn, (*rules, Followed(learn, rules)))))


def _attentions(target: Target) -> tuple[PipelineStep, ...]:
    """Attentions as operators, so that the choice of layouts sees no Transposes around heads."""
    if not target.raises:
        return ()
    raising = (RaiseAttention(target), *sparing(target.gate, JoinHeads()))
    step = Pass(RAISE_ATTENTIONS, lambda model: rewrite_model(model, raising))
    return (Followed(step, _rules(target, lambda: simplifying(target))),)


def _before_resizing(target: Target) -> tuple[PipelineStep, ...]:
    """Products of fewer pixels, where it is known what products take."""
    if target.prices is None:
        return ()
    moving = sparing(target.gate, ProductBeforeResize())
    step = Pass("multiply before resizing", lambda model: rewrite_model(model, moving))
    return (Followed(step, _rules(target, lambda: simplifying(target))),)


def _local_rules(target: Target) -> tuple[PipelineStep, ...]:
    folds = (FoldIntoGemm(), FoldIntoMatMul(target), ExchangeWithVector())
    products = sparing(target.gate, *folds)
    return _rules(target, lambda: (*simplifying(target), *products))


def _rules(target: Target, rewrites: Callable[[], Sequence[Rewrite]]) -> tuple[PipelineStep, ...]:
    """Chains are shortened apart from the rest, which counts on visiting Transposes in order."""
    chains = (*_on_other_axes(target), TakeInBlockMove())
    simplify = _simplify(rewrites)
    shorten = Pass("shorten chains of views", lambda model: rewrite_model(model, chains))
    return (Pass("remove dead nodes", remove_dead), simplify, Followed(shorten, (simplify,)))


def _on_other_axes(target: Target) -> tuple[Rewrite, ...]:
    """What moves Transposes to tensors of other axes, unless a target knows them by their axes."""
    return () if target.keeps_axes else (CanonicalChain(),)


def _simplified(target: Target) -> Pass:
    return _simplify(lambda: simplifying(target))


def _simplify(rewrites: Callable[[], Sequence[Rewrite]]) -> Pass:
    return Pass("simplify Transposes", lambda model: rewrite_model(model, rewrites()))


def _last_rules(target: Target) -> tuple[PipelineStep, ...]:
    """What would get in the way of other rewrites.

    A block move that is found reads channels first, which not every target has a kernel for.
    """
    folds = FoldConstant(leaves_tied=target.keep_size)
    found = () if target.weights is not None else (FindBlockMove(),)
    views = (*_on_other_axes(target), UnitAxisMoveToReshape(), JoinReshapes(shortens=True))
    shared = ShareButForUnitAxes()
    restating = (
        *(GroupTransposedLegs(), BiasBesideProduct(), QuantisedMatrix()),
        StateForInference(),
    )
    last = (
        *sparing(target.gate, *restating),
        *views,
        ReshapeOutsideProduct(),
        *found,
        shared,
        folds,
    )
    return (Pass("rewrite what is left", lambda model: rewrite_model(model, last)),)


def simplifying(target: Target) -> Sequence[Rewrite]:
    """The rewrites that belong together, made anew so that none remembers another model."""
    return (
        FoldConstants(),
        LearnShape(),
        DropIdle(),
        DropIdentity(),
        ComposeChain(),
        FoldConstant(leaves_tied=True),
        ShareEqual(),
        *sparing(target.gate, FoldIntoEinsum()),
    )


@dataclass(slots=True)
class Checking:
    """Raises after the first pass that breaks an invariant."""

    interface: Signature

    def before(self, step: Pass, model: ir.Model) -> None:
        """Nothing to look at yet."""

    def after(self, outcome: Outcome, model: ir.Model) -> None:
        if outcome.changed:
            check(model, self.interface)


@dataclass(slots=True)
class SpeltOut:
    """Why attentions are not raised to operators, by reason, with the names of their Softmaxes."""

    target: Target
    reasons: dict[str, list[str]] = field(default_factory=dict)

    def before(self, step: Pass, model: ir.Model) -> None:
        """Nothing to look at yet."""

    def after(self, outcome: Outcome, model: ir.Model) -> None:
        """Look while heads are still split as exporters write it."""
        if outcome.name == RAISE_ATTENTIONS:
            for node, reason in spelt_out(model, self.target):
                self.reasons.setdefault(reason, []).append(node.name or str(node.outputs[0].name))


@dataclass(slots=True)
class Vanishing:
    """After which pass each Transpose of a model was gone, by its name."""

    steps: dict[str, str] = field(default_factory=dict)
    _left: set[str] | None = None

    def before(self, _step: Pass, model: ir.Model) -> None:
        if self._left is None:
            self._left = set(_names_of_transposes(model))

    def after(self, outcome: Outcome, model: ir.Model) -> None:
        if not outcome.changed or not self._left:
            return
        gone = self._left.difference(_names_of_transposes(model))
        rewrites = ", ".join(sorted(+outcome.applied))
        self.steps |= dict.fromkeys(sorted(gone), f"{outcome.name} ({rewrites})")
        self._left -= gone


def _names_of_transposes(model: ir.Model) -> Iterator[str]:
    return (node.name or str(node.outputs[0].name) for _, node in moving_transposes(model))


@dataclass(slots=True)
class Timing:
    """When each pass ran, and for how long."""

    spans: list[Span] = field(default_factory=list)
    _since: float = 0.0

    def before(self, _step: Pass, _model: ir.Model) -> None:
        self._since = time.perf_counter()

    def after(self, outcome: Outcome, _model: ir.Model) -> None:
        spent = time.perf_counter() - self._since
        self.spans.append(Span(outcome.name, self._since, spent))


def split_slow_transposes(model: ir.Model, terms: Terms) -> bool:
    """Write Transposes that the target is slow at in another way, where time decides; if any."""
    if terms.prices is None or not terms.rewrites_transposes:
        return False
    rewrites: list[Rewrite] = [
        DropUnitAxes(terms.prices, terms.dims),
        SplitSlowTranspose(terms.prices, terms.dims),
    ]
    if terms.target.moves_transposes:
        rewrites.append(KeepRowsApart(terms.prices, terms.dims))
    applied = rewrite_model(model, rewrites)
    name_transposes(model)
    return applied.total() > 0
