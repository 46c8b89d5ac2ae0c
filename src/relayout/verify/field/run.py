"""Compares two models by running both over a prime field."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING

from relayout.verify.bindings import binding_groups, ports_to_try
from relayout.verify.equations import SolvedLengths
from relayout.verify.field.context import FieldContext, WorkLimits
from relayout.verify.field.evaluator import FieldRun
from relayout.verify.field.feeds import drawn, plans_for
from relayout.verify.field.values import TooLargeError, UnknownValue
from relayout.verify.field.verdict import FieldVerdict, all_unknown, compared
from relayout.verify.interface import interface_change, interface_of_model
from relayout.verify.shapes.reading import shapes_of
from relayout.verify.verdict import NumericOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import onnx

    from relayout.verify.bindings import Binding
    from relayout.verify.field.values import FieldValue
    from relayout.verify.interface import Interface, Port

BINDINGS_OF_A_GROUP = 48
# A run that ends as too large took as long as one that is done.
TOO_LARGE_OF_A_GROUP = 2
DEFAULT_LIMITS = WorkLimits()

_Values = dict[str, "FieldValue"]


@dataclass(frozen=True, slots=True)
class _GivenRun:
    """A run of the given model that works as far as it can: its inputs and outputs."""

    feeds: Mapping[str, FieldValue]
    outputs: _Values
    decided: bool

    @property
    def misfits(self) -> int:
        """How many outputs are not there since these inputs do not fit."""
        values = self.outputs.values()
        return sum(isinstance(value, UnknownValue) and value.misfit for value in values)


def field_compare(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    *,
    seed: int = 0,
    limits: WorkLimits = DEFAULT_LIMITS,
) -> FieldVerdict:
    """The verdict over several sizes of the open lengths: different primes, large ones, all 1."""
    interface = interface_of_model(before)
    found: list[FieldVerdict] = []
    for ports in ports_to_try(interface.required, NumericOptions()):
        pair = _FieldPair(before, after, ports, {}, seed, limits)
        # As the model is read; then without, should it have been misread.
        for lengths in (SolvedLengths.of(shapes_of(before, ports).equations), SolvedLengths()):
            groups = binding_groups(ports, lengths) or [[{}]]
            found += [_of_group(pair, group) for group in groups]
            running = [verdict for verdict in found if not verdict.misfit]
            if running:
                return reduce(FieldVerdict.merged, running)
    return found[-1]


def _of_group(pair: _FieldPair, group: Sequence[Binding]) -> FieldVerdict:
    """The verdict at the first binding of a group that the given model runs on, or at the last."""
    too_large = 0
    for binding in islice(group, BINDINGS_OF_A_GROUP):
        verdict = replace(pair, binding=binding).verdict()
        too_large += verdict.too_large
        if not verdict.misfit or too_large == TOO_LARGE_OF_A_GROUP:
            break
    return verdict


def field_run(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    *,
    binding: Binding,
    seed: int,
    limits: WorkLimits = DEFAULT_LIMITS,
) -> FieldVerdict:
    """The verdict at one binding of the open lengths, whose inputs are drawn by a seed."""
    ports = interface_of_model(before).required
    return _FieldPair(before, after, ports, binding, seed, limits).verdict()


@dataclass(frozen=True)
class _FieldPair:
    """Two models at one binding."""

    before: onnx.ModelProto
    after: onnx.ModelProto
    ports: Sequence[Port]
    binding: Binding
    seed: int
    limits: WorkLimits

    @property
    def interface(self) -> Interface:
        return interface_of_model(self.before)

    @property
    def names(self) -> list[str]:
        return [port.name for port in self.interface.outputs]

    def verdict(self) -> FieldVerdict:
        change = interface_change(self.interface, interface_of_model(self.after))
        if change:
            return all_unknown(self.names, change)
        try:
            return self._verdict()
        except TooLargeError as error:
            return all_unknown(self.names, f"too large: {error}", too_large=True)

    def _verdict(self) -> FieldVerdict:
        given = self._given()
        verdict = replace(self._judged(given, None), misfit=given.misfits > 0)
        for forced in (True, False) if given.decided else ():
            verdict = verdict.merged(self._forced(given, forced, verdict))
        return verdict

    def _given(self) -> _GivenRun:
        """The given model with the first inputs that fit it, or that fit it best."""
        found: list[_GivenRun] = []
        for plan in plans_for(self.interface):
            feeds = drawn(self.interface, self.ports, self.binding, plan, self.seed)
            outputs, decided = self._run(self.before, feeds, None)
            found.append(_GivenRun(feeds, outputs, decided))
            if not found[-1].misfits:
                break
        return min(found, key=lambda each: each.misfits)

    def _run(
        self, model: onnx.ModelProto, feeds: Mapping[str, FieldValue], forced: bool | None
    ) -> tuple[_Values, bool]:
        context = FieldContext(self.seed, self.limits, forced)
        return FieldRun(model, context).outputs(feeds), context.decided

    def _judged(self, given: _GivenRun, forced: bool | None) -> FieldVerdict:
        made, _ = self._run(self.after, given.feeds, forced)
        found = [compared(name, given.outputs[name], made[name]) for name in self.names]
        outputs, counts = zip(*found, strict=True) if found else ((), ())
        return FieldVerdict(tuple(outputs), sum(counts))

    def _forced(self, given: _GivenRun, forced: bool, usual: FieldVerdict) -> FieldVerdict:
        """With every If that the inputs decide taken one way, if the given model runs that way."""
        outputs, decided = self._run(self.before, given.feeds, forced)
        one_way = _GivenRun(given.feeds, outputs, decided)
        return usual if one_way.misfits else self._judged(one_way, forced)
