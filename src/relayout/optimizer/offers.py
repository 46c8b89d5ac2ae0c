"""What would leave fewer Transposes: other options, each of them tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from relayout.assign.strategies.registry import Budget, Strategy
from relayout.assign.terms import Terms
from relayout.graph.io.free_interface import free_interface
from relayout.graph.io.model import LoadedModel
from relayout.graph.read import is_default
from relayout.ops.measure import Measure, Objective, moving_transposes
from relayout.optimizer.attempts import Search, Trial
from relayout.optimizer.prepare import as_asked, measured_by, prepare
from relayout.optimizer.rounds import in_rounds
from relayout.report.explanation import EINSUM_WOULD, Demand
from relayout.report.records import OfferRecord, TransposeRecord

ATTENTION_SINCE = 23
"""The opset from which on Attention is an operator."""


@dataclass(frozen=True, slots=True)
class _Other:
    """An option that was not given."""

    words: str
    terms: Terms
    opset: int | None = None
    fix_defaults: bool = False


def offers(
    asked: LoadedModel,
    terms: Terms,
    strategy: Strategy,
    budget: float,
    left: tuple[TransposeRecord, ...],
    *,
    has_attention: bool,
    gave_up: bool,
) -> tuple[OfferRecord, ...]:
    """The options that were tried and leave fewer Transposes than are left, fewest first.

    `gave_up`: what was asked for was given up for the least time.
    """
    found = []
    for other in _others(asked, terms, left, has_attention=has_attention, gave_up=gave_up):
        changed = as_asked(asked, other.opset, fix_defaults=other.fix_defaults)
        prepared = prepare(changed, other.terms.target, other.terms.dims)
        trial = in_rounds(Search(prepared, strategy, Budget(budget)), other.terms)[-1]
        after = _delivered(trial, other.terms)
        if after.transposes < len(left):
            found.append(OfferRecord(other.words, after.transposes, after.bytes_moved))
    return tuple(sorted(found, key=lambda offer: (offer.transposes, offer.bytes_moved)))


def _delivered(trial: Trial, terms: Terms) -> Measure:
    """The figures of what would be delivered: Transposes at a free border go into the interface."""
    if not terms.frees:
        return trial.after
    loaded = trial.loaded.clone()
    free_interface(loaded, inputs=terms.free_inputs, outputs=terms.free_outputs)
    return measured_by(terms, loaded.ir)


def _others(
    asked: LoadedModel,
    terms: Terms,
    left: tuple[TransposeRecord, ...],
    *,
    has_attention: bool,
    gave_up: bool,
) -> Iterator[_Other]:
    """What could help, by what keeps the Transposes that are left."""
    demands = [demand for record in left for demand in _demands(record)]
    version = asked.ir.opset_imports.get("", 0)
    if has_attention and version < ATTENTION_SINCE:
        yield _Other(f"--opset {ATTENTION_SINCE}", terms, opset=ATTENTION_SINCE)
    if gave_up:
        yield _Other(f"--minimize {terms.objective.value}", replace(terms, no_figure_grows=False))
    if terms.objective is not Objective.COUNT:
        count = replace(terms, objective=Objective.COUNT, no_figure_grows=False)
        yield _Other("--minimize count", count)
    if any(EINSUM_WOULD in demand.reason for demand in demands):
        yield _Other("--einsum", replace(terms, target=replace(terms.target, einsum=True)))
    borders = {demand.name for demand in demands if not demand.op_type}
    if not terms.free_inputs and not borders.isdisjoint(v.name for v in asked.ir.graph.inputs):
        yield _Other("--free-inputs", replace(terms, free_inputs=True))
    if not terms.free_outputs and not borders.isdisjoint(v.name for v in asked.ir.graph.outputs):
        yield _Other("--free-outputs", replace(terms, free_outputs=True))
    if any(is_default(node.inputs[0]) for _, node in moving_transposes(asked.ir)):
        yield _Other("--fix-defaults", terms, fix_defaults=True)


def _demands(record: TransposeRecord) -> tuple[Demand, ...]:
    return (*record.why.stored_for.named, *record.why.wanted_by.named)
