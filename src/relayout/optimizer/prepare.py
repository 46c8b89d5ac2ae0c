"""What is done once for all attempts: the file is read, its shapes learned, local rules applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from relayout.assign.terms import Terms
from relayout.errors import RelayoutError
from relayout.graph.invariants import Signature
from relayout.graph.io.defaults import without_defaults
from relayout.graph.io.load import load, reloaded
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import Measure
from relayout.ops.versions.raising import raised
from relayout.optimizer.pipeline import (
    Checking,
    Outcome,
    SpeltOut,
    Timing,
    Vanishing,
    learn_shapes,
    local_rules,
)
from relayout.report.trace import Span
from relayout.rewrite.refine import adopt_shapes, has_vague_moves
from relayout.targets.kernels import check_kernels
from relayout.targets.prediction import measure_on
from relayout.targets.target import Target


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model that attempts start from; each takes a clone, so nothing in here is ever edited."""

    informed: LoadedModel
    """The nodes as they were given, with shapes learned."""
    simplified: LoadedModel
    """After the local rules."""
    before: Measure
    lacking: int
    """Nodes in an order that the target has no kernel for."""
    outcomes: tuple[Outcome, ...]
    spans: tuple[Span, ...]
    """When each pass ran."""
    spelt_out: Mapping[str, Sequence[str]]
    """Why attentions are not raised to operators, with the names of their Softmaxes."""
    is_vague: bool
    """Whether something is moved in the informed model of which not every length is known."""
    removed_by: Mapping[str, str]
    """By name of a Transpose, which pass removed it."""
    target: Target
    rewritten: bool = False
    """Whether its Transposes count as they will be written: a round before made it for time."""

    def before_by(self, known: ir.Model, dims: Mapping[str, int]) -> Measure:
        """The model as given, counted with what is known of lengths in another form of it."""
        if not self.is_vague:
            return self.before
        informed = self.informed.ir.clone()
        adopt_shapes(informed, known)
        return measure_on(self.target, informed, dims, rewritten=self.rewritten)

    @property
    def interface(self) -> Signature:
        return Signature.of(self.informed.ir)


def prepare(
    given: LoadedModel, target: Target, dims: Mapping[str, int], *, rewritten: bool = False
) -> Prepared:
    """A model with what all attempts for a target have in common."""
    check_kernels(given.ir)
    # Only lengths are learned in place: where none are open the given model stands as it is.
    is_vague = has_vague_moves(given.ir)
    informed = given.clone() if is_vague else given
    learned = learn_shapes(informed.ir) if is_vague else given.ir.clone()
    simplified = replace(informed, editable=learned)
    timing, watching, vanishing = Timing(), SpeltOut(target), Vanishing()
    checking = Checking(Signature.of(informed.ir))
    outcomes = local_rules(target).run(simplified.ir, [checking, timing, watching, vanishing])
    if is_vague and has_vague_moves(informed.ir):
        # What the rules have learned counts before as it does after.
        adopt_shapes(informed.ir, simplified.ir)
    return Prepared(
        informed,
        simplified,
        before=measure_on(target, informed.ir, dims, rewritten=rewritten),
        lacking=target.lacking(informed.ir),
        outcomes=tuple(outcomes),
        spans=tuple(timing.spans),
        spelt_out=watching.reasons,
        target=target,
        rewritten=rewritten,
        is_vague=is_vague and has_vague_moves(informed.ir),
        removed_by=vanishing.steps,
    )


def measured_by(terms: Terms, made: ir.Model) -> Measure:
    """A model that was made, with its Transposes as they will be written."""
    return measure_on(terms.target, made, terms.dims, rewritten=terms.rewrites_transposes)


def as_asked(given: LoadedModel, opset: int | None, *, fix_defaults: bool) -> LoadedModel:
    """A model in a newer opset, with constants in place of defaults, where that was asked.

    One that may not be changed stays as it is.
    """
    if given.frozen is not None:
        return given
    asked = given if opset is None else _raised(given, opset)
    return fixed(asked) if fix_defaults else asked


def fixed(loaded: LoadedModel) -> LoadedModel:
    """The model with constants in place of defaults, if it may be changed."""
    return without_defaults(loaded) if loaded.frozen is None else loaded


def opened(source: ModelSource, *, fix_defaults: bool = False) -> LoadedModel:
    """A model that passes can look into."""
    return as_editable(load(source), None, fix_defaults=fix_defaults)


def as_editable(given: LoadedModel, opset: int | None, *, fix_defaults: bool) -> LoadedModel:
    """A model as asked; one that may not be changed is refused."""
    loaded = as_asked(given, opset, fix_defaults=fix_defaults)
    if loaded.frozen is not None:
        raise RelayoutError(f"the model may only be copied: {loaded.frozen}")
    return loaded


def _raised(loaded: LoadedModel, opset: int) -> LoadedModel:
    """The model in a newer opset, to be compared with the file it came from."""
    message = raised(loaded, opset)
    return loaded if message is loaded.source else reloaded(loaded, message)
