"""From a graph and the operator rules to a layout problem."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from relayout.assign.borders import border_drafts
from relayout.assign.dead_ends import drop_dead_ends
from relayout.assign.drafts import Draft, NodeDraft
from relayout.assign.frames import Frame, Frames, Tensor
from relayout.assign.part import Part
from relayout.assign.pricing import CostTable, Pricing
from relayout.assign.problem import (
    LayoutProblem,
    Operator,
    Value,
    Variant,
    as_given,
    evaluate,
)
from relayout.assign.terms import Terms
from relayout.assign.variants import NodeVariants
from relayout.graph.read import constant_of, is_op, is_transposable, shape_of
from relayout.infer.colours import infer_colours
from relayout.layout.layout import Colour, Layout, LayoutClass
from relayout.layout.shuffle import Shuffle, StoredOrder
from relayout.layout.transport import Transport
from relayout.ops.bodies import has_ties
from relayout.ops.quantised_groups import breaks_quantised_group
from relayout.ops.registry import facts_of

VARIANTS_PER_NODE = 128


@dataclass(frozen=True, slots=True)
class Formulation:
    """A layout problem, and what its numbers stand for in the graph."""

    problem: LayoutProblem
    part: Part
    drafts: tuple[Draft, ...]
    """Nodes and borders; their operators come first in the problem, in this order."""
    tensors: Mapping[ir.Value, Tensor]
    frames: Frames
    sources: Mapping[ir.Value, int]
    """The tensors that no node makes, with their operators."""
    cost_given: int
    """What the Transposes of the part cost where they stand."""
    notes: tuple[str, ...]
    is_quantised: bool = False
    """Whether a quantiser would make a step of changed rounding."""

    def given_order(self, source: ir.Value, variant: int) -> StoredOrder | None:
        """The order in which a tensor that no node makes comes in a variant."""
        operator = self.problem.operators[self.sources[source]]
        return self.tensors[source].orders[operator.variants[variant].writes[0]]

    def transport(self, draft: int, variant: int) -> Transport:
        """How a node is restated in a variant."""
        return list(self.drafts[draft].variants.values())[variant]


def formulate(part: Part, terms: Terms, *, kinds: bool = True) -> Formulation:
    """The problem of choosing an order for every tensor of a graph and the bodies in it.

    `kinds`: whether it states what kind of tensor each of them is.
    """
    drafting = _Drafting(part, terms.of(part))
    drafting.spread()
    return drafting.finish(drafting.colours() if kinds else {})


def _class_and_layout(colour: Colour | None) -> tuple[LayoutClass | None, Layout | None]:
    return (None, None) if colour is None else (colour.layout_class, colour.layout)


class _Drafting:
    """Carries orders through a part until no new one appears."""

    def __init__(self, part: Part, terms: Terms) -> None:
        self.part = part
        self.terms = terms
        self.frames = Frames(part.regions)
        self.tensors: dict[ir.Value, Tensor] = {}
        self.drafts: list[Draft] = []
        self.dissolved: list[ir.Node] = []
        self.pricing = Pricing(part, terms)
        self.touching: dict[ir.Value, list[tuple[Draft, int, Frame]]] = {}
        self.waiting: deque[tuple[Tensor, StoredOrder]] = deque()
        self.is_quantised = any(facts_of(node).numbers.quantises for node in part.nodes())
        self.outputs = [self._frame(value) for value in part.root.graph.outputs]
        for node in part.nodes():
            if constant_of(node.outputs[0] if node.outputs else None) is None:
                self._take(node)
        for frame in self.outputs:
            self._want(frame, None)

    def _take(self, node: ir.Node) -> None:
        if self._is_dissolved(node):
            self.dissolved.append(node)
        elif has_ties(node):
            for draft in border_drafts(self.part.region(node).view(node), self._frame):
                self._add(draft)
        else:
            self._add(self._node_draft(node))

    def _is_dissolved(self, node: ir.Node) -> bool:
        is_transpose = is_op(node, "Transpose")
        return is_transpose and self.frames.of(node.outputs[0]).tensor is not node.outputs[0]

    def _node_draft(self, node: ir.Node) -> NodeDraft:
        ways = NodeVariants.of(node, self.part.region(node), self.terms.target)
        read = [*(node.inputs[index] for index in ways.reads), *ways.captured]
        operands = [self._frame(value) for value in read if value is not None]
        slots = tuple(index for index, value in enumerate(node.outputs) if value.name)
        results = [self._frame(node.outputs[index]) for index in slots]
        graphs = [self.part.parent_graph(node)] * len(operands)
        return NodeDraft(node, operands, graphs, results, ways, slots)

    def _add(self, draft: Draft) -> None:
        self.drafts.append(draft)
        for port, frame in enumerate((*draft.operands, *draft.results)):
            self.touching[frame.tensor].append((draft, port, frame))
        for transport in (draft.given, *draft.wanted):
            self._admit(draft, transport)

    def _frame(self, value: ir.Value) -> Frame:
        frame = self.frames.of(value)
        if frame.tensor not in self.tensors:
            rank = None if frame.view is None else frame.view.rank
            runs = self.part.runs[self.part.graph_of(frame.tensor)]
            tensor = Tensor.of(frame.tensor, rank, runs)
            self.tensors[frame.tensor] = tensor
            self.touching[frame.tensor] = []
            self.waiting.extend((tensor, order) for order in tensor.orders if order is not None)
        self.tensors[frame.tensor].see(frame.view, shape_of(value))
        return frame

    def spread(self) -> None:
        while self.waiting:
            tensor, order = self.waiting.popleft()
            for draft, port, frame in self.touching[tensor.value]:
                seen = frame.seen(order)
                if seen is None:
                    continue
                for transport in draft.adds(port, seen):
                    self._admit(draft, transport)

    def _admit(self, draft: Draft, transport: Transport) -> None:
        """Make a restatement a variant of its draft, if its orders can be candidates."""
        if self.is_quantised and self._is_too_rough(draft, transport):
            return
        if self.terms.target.keep_size and self.pricing.stores_twice(draft, transport):
            return
        reads, writes = draft.orders(transport)
        is_shuffled = any(isinstance(order, Shuffle) for order in (*reads, *writes))
        alike = draft.shuffled if is_shuffled else len(draft.variants) - draft.shuffled
        if alike >= VARIANTS_PER_NODE:
            return
        read = [self._want(frame, o) for frame, o in zip(draft.operands, reads, strict=True)]
        written = [self._want(frame, o) for frame, o in zip(draft.results, writes, strict=True)]
        if None in read or None in written:
            return
        ports = (tuple(p or 0 for p in read), tuple(p or 0 for p in written))
        form = ports, draft.lacks_kernel(transport)
        other = draft.variants.setdefault(form, transport)
        if other is transport:
            draft.shuffled += is_shuffled
            return
        dims = self.terms.dims
        if draft.extra_bytes(transport, dims) < draft.extra_bytes(other, dims):
            draft.variants[form] = transport

    def _is_too_rough(self, draft: Draft, transport: Transport) -> bool:
        """Whether quantisers forbid a restatement.

        What runtimes compute in bytes stays so, save where nothing but Transposes counts. And once
        changed rounding showed, of which a quantiser may make a step, first what is computed in
        another way is left out, then all that adds up products in another order.
        """
        changes, terms = transport.changes, self.terms
        if changes.recomputes and not terms.recomputes:
            return True
        if breaks_quantised_group(draft.node, changes) and not terms.leaves_bytes:
            return True
        is_sum = terms.keeps_sums and facts_of(draft.node).numbers.sums_products
        return is_sum and transport != draft.given

    def _may_be_copied(self, value: ir.Value) -> bool:
        """Whether a Transpose takes what a tensor holds; constants are permuted without one."""
        is_constant = constant_of(value) is not None
        return is_constant or is_transposable(value.dtype, self.part.root.version)

    def _want(self, frame: Frame, order: StoredOrder | None) -> int | None:
        """The place of an order among the candidates of its tensor; None if it cannot be one."""
        if not frame.admits(order):
            return None
        tensor, stored = self.tensors[frame.tensor], frame.stored(order)
        place = tensor.place(stored)
        if place is not None or stored is None:
            return place
        if not self._may_be_copied(tensor.value):
            return None
        if not tensor.add(stored, is_given=order is None):
            return None
        self.waiting.append((tensor, stored))
        return tensor.place(stored)

    def colours(self) -> Mapping[ir.Value, Colour]:
        return infer_colours(self.part.region(n).view(n) for n in self.part.nodes()).colours

    def finish(self, colours: Mapping[ir.Value, Colour]) -> Formulation:
        drop_dead_ends(self.drafts, self.tensors, self.outputs)
        terms = self.terms
        numbers = {value: index for index, value in enumerate(self.tensors)}
        costs = self.pricing.settled(self.drafts, self.tensors.values())
        operators = [self._operator(draft, numbers, costs) for draft in self.drafts]
        made = {value for operator in operators for value in operator.results}
        given = [value for value, number in numbers.items() if number not in made]
        sources = [self._source(value, numbers, free=terms.free_inputs) for value in given]
        sinks = [self._sink(frame, numbers, free=terms.free_outputs) for frame in self.outputs]
        values = [
            Value(
                str(tensor.value.name),
                tuple("?" if order is None else str(order) for order in tensor.orders),
                costs.of_copies(tensor),
                *_class_and_layout(colours.get(tensor.value)),
            )
            for tensor in self.tensors.values()
        ]
        problem = LayoutProblem((*operators, *sources, *sinks), tuple(values))
        return Formulation(
            problem,
            self.part,
            tuple(self.drafts),
            self.tensors,
            self.frames,
            {value: len(operators) + index for index, value in enumerate(given)},
            max(self._cost_given(costs), evaluate(problem, as_given(problem)) or 0),
            tuple(self._notes()),
            self.is_quantised,
        )

    def _cost_given(self, costs: CostTable) -> int:
        """The price of the Transposes as they stand: in loops, and in each branch that has them."""
        within = sum(costs.of_variant(draft, draft.given) for draft in self.drafts)
        return within + sum(self._given_copy(node, costs) for node in self.dissolved)

    def _given_copy(self, node: ir.Node, costs: CostTable) -> int:
        source = None if node.inputs[0] is None else self.frames.of(node.inputs[0])
        # What only Transposes read is in no operator's way, and no tensor here.
        if source is None or source.tensor not in self.tensors:
            return 0
        stored, wanted = self._want(source, None), self._want(self.frames.of(node.outputs[0]), None)
        if stored is None or wanted is None or stored == wanted:
            return 0
        runs = self.part.runs[self.part.parent_graph(node)]
        return costs.of_given(self.tensors[source.tensor], stored, wanted, runs)

    def _operator(
        self, draft: Draft, numbers: Mapping[ir.Value, int], costs: CostTable
    ) -> Operator:
        return Operator(
            draft.name,
            tuple(numbers[frame.tensor] for frame in draft.operands),
            tuple(numbers[frame.tensor] for frame in draft.results),
            tuple(
                Variant(*ports, costs.of_variant(draft, transport), key)
                for key, ((ports, _), transport) in enumerate(draft.variants.items())
            ),
        )

    def _source(self, value: ir.Value, numbers: Mapping[ir.Value, int], *, free: bool) -> Operator:
        """What comes from outside; an input that is free comes in any order, for nothing."""
        is_free = free and value in self.part.root.graph.inputs and not value.is_initializer()
        places = self.tensors[value].axis_orders if is_free else (0,)
        variants = tuple(Variant((), (place,)) for place in places)
        return Operator(f"given {value.name}", (), (numbers[value],), variants)

    def _sink(self, frame: Frame, numbers: Mapping[ir.Value, int], *, free: bool) -> Operator:
        """What goes outside; an output that is free goes in any order, for nothing."""
        given = self._want(frame, None) or 0
        others = self.tensors[frame.tensor].axis_orders if free else ()
        places = dict.fromkeys((given, *others))
        variants = tuple(Variant((place,), ()) for place in places)
        return Operator(f"output {frame.tensor.name}", (numbers[frame.tensor],), (), variants)

    def _notes(self) -> list[str]:
        full = [str(tensor.value.name) for tensor in self.tensors.values() if tensor.full]
        if not full:
            return []
        return [
            f"{len(full)} tensors have more candidate orders than are considered, {full[0]!r} first"
        ]
