"""Chooses in which order tensors of four axes are stored, by prices measured on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from relayout.assign.problem import LayoutProblem, Operator, Value, Variant, copies
from relayout.assign.strategies.exact import solve
from relayout.backends.torch.choose.plan import Forms, Plan
from relayout.backends.torch.program.program import EAGER, ProgramStep
from relayout.backends.torch.providers.orders import (
    FIRST,
    LAST,
    EagerInOrder,
    Order,
    RegionKernel,
    Stored,
)
from relayout.backends.torch.providers.prices import ALIKE, CANNOT_RUN
from relayout.backends.torch.providers.work import borders_of
from relayout.graph.read import constant_of, perm_of, rank_of, view_of
from relayout.ops.facts import Storage
from relayout.ops.fusing import fuses_as
from relayout.ops.kind import Kind
from relayout.ops.registry import facts_of

ORDERS: tuple[Order, ...] = (FIRST, LAST)

COST_OF_CANNOT_RUN = 10**14
"""The cost, in nanoseconds, of a candidate that cannot run: more than any model takes."""

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""Transposes that are views of what is stored channels last, or first."""


def with_memory_formats(steps: Sequence[ProgramStep], plan: Plan) -> list[ProgramStep]:
    """The steps with the forms of convolutions and the copies that take the least time in all."""
    if not any(step.nodes[-1] in plan.forms for step in steps):
        return list(steps)
    formats = MemoryFormatProblem(plan)
    for step in steps:
        formats.add(step)
    problem = formats.problem()
    choice = solve(problem).choice
    images = list(formats.values)
    chosen = formats.applied(steps, choice)
    copied = [(images[v], ORDERS[order]) for v, _, order in copies(problem, choice)]
    plan.note_formats(chosen, copied)
    return chosen


@dataclass
class MemoryFormatProblem:
    """Steps as operators of a layout problem, one for each step, in nanoseconds."""

    plan: Plan
    values: dict[ir.Value, int] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)

    def add(self, step: ProgramStep) -> None:
        read, made = borders_of(step.nodes)
        operands, results = ([v for v in values if _is_image(v)] for values in (read, made))
        variants = self._variants(step, operands, results)
        reads, writes = (tuple(map(self._number, values)) for values in (operands, results))
        name = step.nodes[-1].name or step.nodes[-1].op_type
        self.operators.append(Operator(name, reads, writes, tuple(variants)))

    def problem(self) -> LayoutProblem:
        made = {number for operator in self.operators for number in operator.results}
        given = [
            Operator(value.name or "", (), (number,), (Variant((), (ORDERS.index(FIRST),)),))
            for value, number in self.values.items()
            if number not in made
        ]
        values = tuple(self._value(value) for value in self.values)
        return LayoutProblem((*self.operators, *given), values)

    def applied(self, steps: Sequence[ProgramStep], choice: Sequence[int]) -> list[ProgramStep]:
        """The steps as chosen; they know how what they read is stored."""
        taken = [each.variants[n] for each, n in zip(self.operators, choice, strict=False)]
        orders: dict[ir.Value, Order] = dict.fromkeys(self.values, FIRST)
        sure = {value: FIRST for value in self.values if value.is_graph_input()}
        images = list(self.values)
        for step, operator, variant in zip(steps, self.operators, taken, strict=True):
            writes = [ORDERS[order] for order in variant.writes]
            made = dict(zip((images[n] for n in operator.results), writes, strict=True))
            orders.update(made)
            sure.update(made if self._is_sure(step) else {})
        return [
            self._applied(step, [images[n] for n in operator.operands], variant, orders, sure)
            for step, operator, variant in zip(steps, self.operators, taken, strict=True)
        ]

    def _is_sure(self, step: ProgramStep) -> bool:
        """Whether a step writes tensors of its own, and in the order it is taken to write them."""
        if not _is_eager(step):
            return _forms(step, self.plan) is not None or isinstance(step.realisation, RegionKernel)
        return self._passes(step) and facts_of(step.nodes[-1]).storage is not Storage.PART

    def _applied(
        self,
        step: ProgramStep,
        operands: Sequence[ir.Value],
        variant: Variant,
        orders: Stored,
        sure: Stored,
    ) -> ProgramStep:
        forms = _forms(step, self.plan)
        if forms is not None:
            return replace(step, realisation=replace(forms.options[variant.key], stored=sure))
        if not _is_eager(step) or not self._passes(step):
            return step
        wanted = [ORDERS[order] for order in variant.reads]
        copied = [v for v, order in zip(operands, wanted, strict=True) if orders[v] != order]
        copied = [value for value in copied if any(self.plan.copy_seconds(value))]
        if not copied:
            return ProgramStep(step.nodes)
        return ProgramStep(step.nodes, EagerInOrder(tuple(copied), wanted[0], sure))

    def _number(self, value: ir.Value) -> int:
        return self.values.setdefault(value, len(self.values))

    def _value(self, value: ir.Value) -> Value:
        last, first = map(_nanoseconds, self.plan.copy_seconds(value))
        return Value(value.name or "", ORDERS, ((0, last), (first, 0)))

    # -- variants --------------------------------------------------------------------------------

    def _variants(
        self, step: ProgramStep, operands: Sequence[ir.Value], results: Sequence[ir.Value]
    ) -> list[Variant]:
        forms = _forms(step, self.plan)
        if forms is not None:
            return self._form_variants(forms, operands)
        if isinstance(step.realisation, RegionKernel):
            return [_region_variant(step.realisation, operands, results)]
        counts = (len(operands), len(results))
        if not _is_eager(step):
            return [_uniform(FIRST, counts)]
        (node, *more) = step.nodes
        perm = None if more else perm_of(node)
        if perm is not None and perm.axes in {TO_LAST, TO_FIRST} and operands:
            return [_crossing(LAST if perm.axes == TO_LAST else FIRST)]
        if not operands or not self._passes(step):
            return [_uniform(FIRST, counts)]
        is_pool = facts_of(node).storage is Storage.POOLED and not more
        prices = self.plan.node_seconds(node) if is_pool else (0.0, 0.0)
        last, first = map(_nanoseconds, prices)
        return [
            _uniform(LAST, counts, last),
            _uniform(FIRST, counts, _with_hysteresis(first, last)),
        ]

    def _passes(self, step: ProgramStep) -> bool:
        return all(_passes(node, self.plan) for node in step.nodes)

    def _form_variants(self, forms: Forms, operands: Sequence[ir.Value]) -> list[Variant]:
        known = self.plan.prices.seconds(forms.work.key(self.plan.site))
        prices = [_nanoseconds(known.get(form.name, 0.0)) for form in forms.options]
        found = []
        for key, (form, price) in enumerate(zip(forms.options, prices, strict=True)):
            orders = [form.reads if v is form.group.source else form.writes for v in operands]
            reads = tuple(map(ORDERS.index, orders))
            steady = _with_hysteresis(price, prices[0]) if key else price
            found.append(Variant(reads, (ORDERS.index(form.writes),), steady, key))
        return found


def _with_hysteresis(price: int, last: int) -> int:
    """What takes about as long as channels last counts as that much slower than it.

    So a new measurement rarely changes the choice.
    """
    return price if last > ALIKE * price else max(price, round(ALIKE * last))


def _nanoseconds(seconds: float) -> int:
    return round(1e9 * seconds) if seconds < CANNOT_RUN else COST_OF_CANNOT_RUN


def _uniform(order: Order, counts: tuple[int, int], price: int = 0) -> Variant:
    reads, writes = ((ORDERS.index(order),) * count for count in counts)
    return Variant(reads, writes, price)


def _crossing(reads: Order) -> Variant:
    """A Transpose that is a view: its result is stored in the other order."""
    other = FIRST if reads == LAST else LAST
    return Variant((ORDERS.index(reads),), (ORDERS.index(other),))


def _region_variant(
    region: RegionKernel, operands: Sequence[ir.Value], results: Sequence[ir.Value]
) -> Variant:
    """The one way to run several steps that a kernel has."""
    reads = (ORDERS.index(region.reads_in(value)) for value in operands)
    writes = (ORDERS.index(region.writes_in(value)) for value in results)
    return Variant(tuple(reads), tuple(writes))


def _forms(step: ProgramStep, plan: Plan) -> Forms | None:
    return None if isinstance(step.realisation, RegionKernel) else plan.forms.get(step.nodes[-1])


def _is_eager(step: ProgramStep) -> bool:
    return step.realisation is EAGER or isinstance(step.realisation, EagerInOrder)


def _passes(node: ir.Node, plan: Plan) -> bool:
    """Whether torch stores the results as the operands are stored."""
    storage = facts_of(node).storage
    if storage is Storage.JOINED:
        return node.attributes.get_int("axis", 0) in {1, -3}
    return storage is not None or fuses_as(view_of(node, plan.site.opsets)).kind <= Kind.BROADCAST


def _is_image(value: ir.Value) -> bool:
    return rank_of(value) == 4 and constant_of(value) is None
