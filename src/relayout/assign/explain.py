"""Why each Transpose of a model is there; decides nothing and edits nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir

from relayout.assign.drafts import Draft, NodeDraft
from relayout.assign.formulate import Formulation, formulate
from relayout.assign.needed import Possible
from relayout.assign.part import parts_of
from relayout.assign.problem import Variant, as_given, copies
from relayout.assign.strategies.exact import solve
from relayout.assign.terms import Terms
from relayout.graph.read import is_op, perm_of
from relayout.graph.source_line import source_line
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.einsum import equation_of_product
from relayout.ops.measure import moving_transposes
from relayout.ops.quantised_groups import breaks_quantised_group
from relayout.ops.rule import ask, ask_joint
from relayout.report.explanation import (
    AVOIDABLE,
    EINSUM_WOULD,
    INVALID,
    NEEDED,
    NO_CONFLICT,
    NO_DATA,
    PASSES_ON,
    UNDOES,
    Demand,
    Demands,
    Explanation,
)
from relayout.targets.target import ONNX, Target

NAMED = 3
"""How many demands of a side are named."""
WALKED = 200
"""How many operators are asked for one side of one Transpose."""


class Request(NamedTuple):
    """An operator is asked to run with one of its operands or results in another order."""

    operator: int
    port: int
    """Counts operands, then results."""
    order: int


def explanations(
    model: ir.Model,
    dims: Mapping[str, int],
    budget_seconds: float | None = None,
    target: Target = ONNX,
) -> dict[ir.Node, Explanation]:
    """An explanation of every Transpose that moves data at run time.

    With a budget the layouts of each graph are chosen too, to find which ones are avoidable.
    """
    return StatedModel.of(model, Terms(target=target, dims=dims)).explained(budget_seconds)


@dataclass(frozen=True, slots=True)
class StatedModel:
    """A model with its parts as layout problems, at least those with a Transpose."""

    model: ir.Model
    formulations: tuple[Formulation, ...]

    @classmethod
    def of(cls, model: ir.Model, terms: Terms) -> StatedModel:
        moving = {node.graph for _, node in moving_transposes(model)}
        parts = [part for part in parts_of(model) if not moving.isdisjoint(part.regions)]
        return cls(model, tuple(formulate(part, terms, kinds=False) for part in parts))

    def explained(self, budget_seconds: float | None = None) -> dict[ir.Node, Explanation]:
        """An explanation of every Transpose, as by `explanations`."""
        moving = {node for _, node in moving_transposes(self.model)}
        found: dict[ir.Node, Explanation] = {}
        for formulation in self.formulations:
            nodes = [node for graph in formulation.part.regions for node in graph if node in moving]
            if not nodes:
                continue
            explaining = _Explaining(formulation, _kept(formulation, budget_seconds))
            found.update((node, explaining.of(node)) for node in nodes)
        return found


def _kept(formulation: Formulation, budget_seconds: float | None) -> set[tuple[int, int, int]]:
    """The copies that are there in the best choice known, in either direction."""
    problem = formulation.problem
    best = as_given(problem)
    if budget_seconds is not None:
        best = solve(problem, budget_seconds).choice
    moved = copies(problem, best)
    return {*moved, *((value, wanted, stored) for value, stored, wanted in moved)}


class _Explaining:
    """Explains the Transposes of one part of a model as it is."""

    def __init__(self, formulation: Formulation, kept: set[tuple[int, int, int]]) -> None:
        self.formulation, self.kept = formulation, kept
        self.walk = _Walk(formulation)
        self.numbers = {value: number for number, value in enumerate(formulation.tensors)}
        problem = formulation.problem
        self.copies = set(copies(problem, as_given(problem)))
        self.possible = Possible(problem)

    def of(self, node: ir.Node) -> Explanation:
        result, order = node.outputs[0], perm_of(node)
        frame = self.formulation.frames.of(result)
        if order is None or frame.tensor is result or frame.tensor not in self.numbers:
            return Explanation(note=INVALID if order is None else PASSES_ON)
        number = self.numbers[frame.tensor]
        wanted = self.formulation.tensors[frame.tensor].place(frame.view)
        stored = self.walk.stored(number)
        if wanted == stored:
            is_chain = frame.view != order
            return Explanation(note=UNDOES if is_chain else NO_DATA)
        if wanted is None or (number, stored, wanted) not in self.copies:
            return Explanation(note=PASSES_ON)
        return self._conflict(number, stored, wanted)

    def _conflict(self, number: int, stored: int, wanted: int) -> Explanation:
        stored_for = self._demands(self.walk.storing(number, wanted))
        wanted_by = self._demands(self.walk.wanting(number, wanted, stored))
        if (number, stored, wanted) not in self.kept:
            return Explanation(stored_for, wanted_by, AVOIDABLE)
        if self.possible.needs_transpose(number, wanted):
            return Explanation(stored_for, wanted_by, NEEDED)
        is_conflict = stored_for.named and wanted_by.named
        return Explanation(stored_for, wanted_by, "" if is_conflict else NO_CONFLICT)

    def _demands(self, requests: Sequence[Request]) -> Demands:
        refused = self.walk.refused(requests)
        named = tuple(self._demand(request) for request in refused[:NAMED])
        return Demands(named, len(refused) - len(named))

    def _demand(self, request: Request) -> Demand:
        drafts, operator = self.formulation.drafts, request.operator
        if operator < len(drafts):
            draft = drafts[operator]
            node = draft.node
            reason = _reason(self.formulation, draft, request)
            name = self.formulation.problem.operators[operator].name
            return Demand(name, node.op_type, reason, source_line(node))
        return self._boundary(operator)

    def _boundary(self, operator: int) -> Demand:
        """What the inputs and outputs of a graph demand."""
        problem, part = self.formulation.problem, self.formulation.part
        results, graph = problem.operators[operator].results, part.root.graph
        kind = "model" if part.is_main else "inner graph"
        if not results:
            name = str(graph.outputs[operator - len(problem.operators)].name)
            return Demand(name, "", f"the {kind}'s output '{name}', declared in this order")
        name = problem.values[results[0]].name
        value = next(v for v, number in self.formulation.sources.items() if number == operator)
        node = value.producer() or part.owners.get(part.graph_of(value))
        if node is not None:
            reason = f"{node.op_type} gives '{name}' in this order only"
            return Demand(node.name or name, node.op_type, reason, source_line(node))
        return Demand(name, "", f"the {kind}'s input '{name}', given in this order")


class _Walk:
    """Asks operator after operator to run in another order than it does now, nearest first."""

    def __init__(self, formulation: Formulation) -> None:
        self.operators = formulation.problem.operators
        values = formulation.problem.values
        self.writing: list[tuple[int, int]] = [(0, 0)] * len(values)
        self.reading: list[list[tuple[int, int]]] = [[] for _ in values]
        for number, operator in enumerate(self.operators):
            for port, value in enumerate(operator.operands):
                self.reading[value].append((number, port))
            for port, value in enumerate(operator.results, len(operator.operands)):
                self.writing[value] = (number, port)

    def stored(self, value: int) -> int:
        return self._now(*self.writing[value])

    def storing(self, value: int, order: int) -> list[Request]:
        """What has to follow if a value is stored in another order."""
        ports = [self.writing[value], *self.reading[value]]
        return [Request(*port, order) for port in ports if self._now(*port) != order]

    def wanting(self, value: int, wanted: int, order: int) -> list[Request]:
        """What has to follow if the consumers of a value in one order get it in another."""
        ports = self.reading[value]
        return [Request(*port, order) for port in ports if self._now(*port) == wanted]

    def refused(self, requests: Sequence[Request]) -> list[Request]:
        """The requests that could not be granted, one per operator, nearest first."""
        waiting, asked = deque(requests), set(requests)
        refused: dict[int, Request] = {}
        walked = 0
        while waiting and walked < WALKED:
            request = waiting.popleft()
            walked += 1
            variant = self._granting(request)
            if variant is None:
                refused.setdefault(request.operator, request)
                continue
            for other in self._following(request, variant):
                if other not in asked:
                    asked.add(other)
                    waiting.append(other)
        return list(refused.values())

    def _granting(self, request: Request) -> Variant | None:
        """The variant that grants a request, costs no more than now, and changes least else."""
        given, *others = self.operators[request.operator].variants
        granting = [
            variant
            for variant in others
            if variant.price <= given.price and _orders(variant)[request.port] == request.order
        ]
        return min(granting, key=lambda variant: _distance(given, variant), default=None)

    def _following(self, request: Request, variant: Variant) -> Iterator[Request]:
        """What the neighbours of an operator have to do if it runs in another variant."""
        operator = self.operators[request.operator]
        values = (*operator.operands, *operator.results)
        now = _orders(operator.variants[0])
        for port, (value, order) in enumerate(zip(values, _orders(variant), strict=True)):
            if port == request.port or order == now[port] or self.stored(value) == order:
                continue
            for other in self.storing(value, order):
                if other.operator != request.operator:
                    yield other

    def _now(self, operator: int, port: int) -> int:
        return _orders(self.operators[operator].variants[0])[port]


def _orders(variant: Variant) -> tuple[int, ...]:
    return variant.reads + variant.writes


def _distance(given: Variant, other: Variant) -> int:
    """How many operands and results are in another order."""
    return sum(a != b for a, b in zip(_orders(given), _orders(other), strict=True))


def _reason(formulation: Formulation, draft: Draft, request: Request) -> str:
    """Why one of the ports of a draft cannot be in an order."""
    frame = (*draft.operands, *draft.results)[request.port]
    stored = formulation.tensors[frame.tensor].orders[request.order]
    order = None if stored is None else frame.seen(stored)
    if order is None:
        return "the number of axes is unknown"
    if isinstance(order, Shuffle):
        return f"{draft.node.op_type} takes the entries of its axes in this order only"
    if not isinstance(draft, NodeDraft):
        return f"the bodies of {draft.node.op_type} take and give it in this order only"
    return _node_reason(draft, request.port, order) + _by_equation(draft)


def _node_reason(draft: NodeDraft, port: int, order: Permutation) -> str:
    """Why a node cannot run with one of its ports in an order, in the words of its rule."""
    ways = draft.ways
    if len(ways.reads) <= port < len(draft.operands):
        return f"a body of {ways.node.op_type} reads it in this order"
    if port < len(ways.reads):
        answer = _ask_operand(draft, ways.reads[port], order)
    else:
        answer = _ask_result(draft, draft.result_slots[port - len(draft.operands)], order)
    if isinstance(answer, Refusal):
        return answer.reason
    if answer is not None and draft.extra_bytes(answer, {}) > draft.extra_bytes(draft.given, {}):
        return f"{ways.node.op_type} would move more data in the other order"
    return f"no variant of {ways.node.op_type} has it in the other order"


def _by_equation(draft: NodeDraft) -> str:
    """What would let a product run in the other order, if it was not asked for yet."""
    ways = draft.ways
    is_open = is_op(draft.node, "MatMul") and ways.rule.separate is None and not ways.rule.barrier
    is_open = is_open and not breaks_quantised_group(draft.node, Changes(op_type="Einsum"))
    can = is_open and not isinstance(equation_of_product(ways.view), Refusal)
    return f"; {EINSUM_WOULD}" if can else ""


def _ask_operand(draft: NodeDraft, slot: int, order: Permutation) -> Transport | Refusal | None:
    ways = draft.ways
    joint = ask_joint(ways.rule, ways.view, slot, order)
    if joint:
        return joint[0]
    if slot != ways.lead and ways.view.rank(ways.lead) != order.rank:
        return None
    return ask(ways.rule, ways.view, order)


def _ask_result(draft: NodeDraft, slot: int, order: Permutation) -> Transport | Refusal | None:
    ways = draft.ways
    if slot != 0:
        return None
    lead = ways.rule.pull(ways.view, order)
    return lead if isinstance(lead, Refusal) else ask(ways.rule, ways.view, lead)
