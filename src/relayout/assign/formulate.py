"""From a graph and the operator rules to a layout problem."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import onnx_ir as ir

from relayout.assign.frames import Frame, Frames, Tensor
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant
from relayout.assign.variants import NodeVariants
from relayout.graph.measure import Objective, bytes_of
from relayout.graph.read import constant_of, is_op
from relayout.graph.region import Region
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Transport
from relayout.ops.rule import unchanged
from relayout.targets.target import ONNX, Target

VARIANTS_PER_NODE = 64

Ports: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The places of the orders a variant reads and writes."""


@dataclass(slots=True)
class Draft:
    """A node on its way to an operator of the problem."""

    ways: NodeVariants
    operands: list[Frame]
    results: list[Frame]
    result_slots: tuple[int, ...]
    variants: dict[Ports, Transport] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Formulation:
    """A layout problem, and what its numbers stand for in the graph."""

    problem: LayoutProblem
    drafts: tuple[Draft, ...]
    """The nodes; their operators come first in the problem, in this order."""
    tensors: Mapping[ir.Value, Tensor]
    frames: Frames
    sources: Mapping[ir.Value, int]
    """The tensors that no node makes, with their operators."""
    notes: tuple[str, ...]

    def given_order(self, source: ir.Value, variant: int) -> Permutation | None:
        """The order in which a tensor that no node makes comes in a variant."""
        operator = self.problem.operators[self.sources[source]]
        return self.tensors[source].orders[operator.variants[variant].writes[0]]

    def transport(self, draft: int, variant: int) -> Transport:
        """How a node is restated in a variant."""
        return list(self.drafts[draft].variants.values())[variant]


@dataclass(frozen=True, slots=True)
class Terms:
    """What is made least on which target, and what of the interface may change."""

    objective: Objective = Objective.BYTES
    target: Target = ONNX
    dims: Mapping[str, int] = field(default_factory=dict)
    free_inputs: bool = False
    free_outputs: bool = False

    def inside(self) -> Terms:
        """The same for a body, whose borders are not the model's."""
        return replace(self, free_inputs=False, free_outputs=False)


def formulate(region: Region, terms: Terms) -> Formulation:
    """The problem of choosing an order for every tensor of one graph."""
    drafting = _Drafting(region, terms.target)
    drafting.spread()
    return drafting.finish(terms)


Weigh: TypeAlias = Callable[[int, int], int]
"""One price from bytes moved and Transposes."""


def _weighing(
    objective: Objective,
    tensors: Sequence[Tensor],
    drafts: Sequence[Draft],
    dims: Mapping[str, int],
) -> Weigh:
    """Prices in which the secondary figure can never add up to one unit of the primary."""
    copies = sum(len(tensor.orders) - 1 for tensor in tensors)
    moved = sum((len(tensor.orders) - 1) * tensor.bytes_moved(dims) for tensor in tensors)
    moved += sum(
        max(_extra_bytes(draft, transport, dims) for transport in draft.variants.values())
        for draft in drafts
    )
    unit = math.gcd(*(tensor.bytes_moved(dims) for tensor in tensors)) or 1
    if objective is Objective.BYTES:
        return lambda size, count: size // unit * (copies + 1) + count
    return lambda size, count: count * (moved // unit + 1) + size // unit


def _extra_bytes(draft: Draft, transport: Transport, dims: Mapping[str, int]) -> int:
    """What a restatement of several nodes moves beyond what the given node does."""
    if not transport.changes.extra_passes:
        return 0
    lead = draft.ways.node.inputs[draft.ways.lead]
    return 0 if lead is None else transport.changes.extra_passes * 2 * bytes_of(lead, dims)


class _Drafting:
    """Carries orders through the graph until no new one appears."""

    def __init__(self, region: Region, target: Target) -> None:
        self.region = region
        self.target = target
        self.frames = Frames(region.graph)
        self.tensors: dict[ir.Value, Tensor] = {}
        self.drafts: list[Draft] = []
        self.touching: dict[ir.Value, list[tuple[Draft, int, bool, Frame]]] = {}
        self.waiting: deque[tuple[Tensor, Permutation]] = deque()
        self.outputs = [self._frame(value) for value in region.graph.outputs]
        for node in region.graph:
            if constant_of(node.outputs[0] if node.outputs else None) is None:
                self._draft(node)
        for frame in self.outputs:
            self._want(frame, None)

    def _draft(self, node: ir.Node) -> None:
        if (
            is_op(node, "Transpose")
            and self.frames.of(node.outputs[0]).tensor is not node.outputs[0]
        ):
            return
        ways = NodeVariants.of(node, self.region, self.target)
        reads = [self._frame(value) for index in ways.reads if (value := node.inputs[index])]
        slots = tuple(index for index, value in enumerate(node.outputs) if value.name)
        results = [self._frame(node.outputs[index]) for index in slots]
        captured = [self._frame(value) for value in ways.captured]
        draft = Draft(ways, [*reads, *captured], results, slots)
        self.drafts.append(draft)
        for slot, frame in zip(ways.reads, reads, strict=True):
            self.touching[frame.tensor].append((draft, slot, False, frame))
        for slot, frame in zip(slots, results, strict=True):
            self.touching[frame.tensor].append((draft, slot, True, frame))
        self._admit(draft, unchanged(ways.view))

    def _frame(self, value: ir.Value) -> Frame:
        frame = self.frames.of(value)
        if frame.tensor not in self.tensors:
            tensor = Tensor.of(frame.tensor, None if frame.view is None else frame.view.rank)
            self.tensors[frame.tensor] = tensor
            self.touching[frame.tensor] = []
            self.waiting.extend((tensor, order) for order in tensor.orders if order is not None)
        return frame

    def spread(self) -> None:
        while self.waiting:
            tensor, order = self.waiting.popleft()
            for draft, slot, is_result, frame in self.touching[tensor.value]:
                seen = frame.seen(order)
                if seen is None:
                    continue
                for lead in draft.ways.leads_to_try(slot, is_result=is_result, seen=seen):
                    self._admit_all(draft, draft.ways.try_lead(lead))
                if not is_result:
                    self._admit_all(draft, draft.ways.try_sides(slot, seen))

    def _admit_all(self, draft: Draft, found: list[Transport]) -> None:
        for transport in found:
            self._admit(draft, transport)

    def _admit(self, draft: Draft, transport: Transport) -> None:
        """Make a restatement a variant of its node, if its orders can be candidates."""
        if len(draft.variants) >= VARIANTS_PER_NODE:
            return
        captured = [None] * len(draft.ways.captured)
        reads = [*(transport.inputs[index] for index in draft.ways.reads), *captured]
        writes = [transport.outputs[slot] for slot in draft.result_slots]
        read = [self._want(frame, o) for frame, o in zip(draft.operands, reads, strict=True)]
        written = [self._want(frame, o) for frame, o in zip(draft.results, writes, strict=True)]
        if None in read or None in written:
            return
        ports = (tuple(p or 0 for p in read), tuple(p or 0 for p in written))
        draft.variants.setdefault(ports, transport)

    def _want(self, frame: Frame, order: Permutation | None) -> int | None:
        """The place of an order among the candidates of its tensor; None if it cannot be one."""
        if frame.view is None and order is not None and not order.is_identity:
            return None
        tensor, stored = self.tensors[frame.tensor], frame.stored(order)
        place = tensor.place(stored)
        if place is not None or stored is None:
            return place
        if not tensor.add(stored, is_given=order is None):
            return None
        self.waiting.append((tensor, stored))
        return tensor.place(stored)

    def finish(self, terms: Terms) -> Formulation:
        dims = terms.dims
        numbers = {value: index for index, value in enumerate(self.tensors)}
        weigh = _weighing(terms.objective, list(self.tensors.values()), self.drafts, dims)
        operators = [self._operator(draft, numbers, weigh, dims) for draft in self.drafts]
        made = {value for operator in operators for value in operator.results}
        given = [value for value, number in numbers.items() if number not in made]
        sources = [self._source(value, numbers, free=terms.free_inputs) for value in given]
        sinks = [self._sink(frame, numbers, free=terms.free_outputs) for frame in self.outputs]
        values = [
            Value(
                str(tensor.value.name),
                tuple("?" if order is None else str(order) for order in tensor.orders),
                weigh(tensor.bytes_moved(dims), 1),
            )
            for tensor in self.tensors.values()
        ]
        problem = LayoutProblem((*operators, *sources, *sinks), tuple(values))
        return Formulation(
            problem,
            tuple(self.drafts),
            self.tensors,
            self.frames,
            {value: len(operators) + index for index, value in enumerate(given)},
            tuple(self._notes()),
        )

    def _operator(
        self, draft: Draft, numbers: Mapping[ir.Value, int], weigh: Weigh, dims: Mapping[str, int]
    ) -> Operator:
        node = draft.ways.node
        return Operator(
            node.name or str(node.outputs[0].name if node.outputs else node.op_type),
            tuple(numbers[frame.tensor] for frame in draft.operands),
            tuple(numbers[frame.tensor] for frame in draft.results),
            tuple(
                Variant(*ports, weigh(_extra_bytes(draft, transport, dims), 0), key)
                for key, (ports, transport) in enumerate(draft.variants.items())
            ),
        )

    def _source(self, value: ir.Value, numbers: Mapping[ir.Value, int], *, free: bool) -> Operator:
        """What comes from outside; an input that is free comes in any order, for nothing."""
        is_free = free and value in self.region.graph.inputs and not value.is_initializer()
        places = range(len(self.tensors[value].orders)) if is_free else (0,)
        variants = tuple(Variant((), (place,)) for place in places)
        return Operator(f"given {value.name}", (), (numbers[value],), variants)

    def _sink(self, frame: Frame, numbers: Mapping[ir.Value, int], *, free: bool) -> Operator:
        """What goes outside; an output that is free goes in any order, for nothing."""
        given = self._want(frame, None) or 0
        others = range(len(self.tensors[frame.tensor].orders)) if free else ()
        places = dict.fromkeys((given, *others))
        variants = tuple(Variant((place,), ()) for place in places)
        return Operator(f"output {frame.tensor.name}", (numbers[frame.tensor],), (), variants)

    def _notes(self) -> list[str]:
        full = [str(tensor.value.name) for tensor in self.tensors.values() if tensor.full]
        if not full:
            return []
        return [
            f"{len(full)} tensors have more candidate orders than are looked at, {full[0]!r} first"
        ]
