"""From a graph and the operator rules to a layout problem."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import onnx_ir as ir

from relayout.assign.borders import border_drafts
from relayout.assign.drafts import Draft, NodeDraft
from relayout.assign.frames import Frame, Frames, Tensor
from relayout.assign.part import Part
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant, as_given, evaluate
from relayout.assign.tied import stores_twice, tied_operands
from relayout.assign.variants import NodeVariants
from relayout.graph.read import constant_of, is_op
from relayout.infer.colours import infer_colours
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Transport
from relayout.ops.bodies import has_ties
from relayout.ops.measure import Objective, objective_of
from relayout.ops.quantised_groups import breaks_quantised_group
from relayout.ops.registry import facts_of
from relayout.targets.target import ONNX, Target, target_of

VARIANTS_PER_NODE = 128
FLAGS = ("free_inputs", "free_outputs", "keeps_sums", "recomputes")

COPIES_WITHOUT_KERNEL = 4
"""Twice the copies around an operator that the target cannot run in an order."""


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
    keeps_sums: bool = False
    """Whether sums of products in quantised parts stay as they are, since rounding showed."""
    recomputes: bool = True
    """Whether operators in quantised parts may be restated in ways that change rounding."""

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> Terms:
        """The terms that a certificate was made under."""
        einsum, keep_size = (settings.get(name) is True for name in ("einsum", "keep_size"))
        keep = settings.get("keep") or ()
        return cls(
            objective_of(str(settings.get("minimize"))),
            target_of(str(settings.get("target")), keep, einsum=einsum, keep_size=keep_size),
            settings.get("dims") or {},
            *(settings.get(name) is True for name in FLAGS),
        )

    @property
    def with_care(self) -> tuple[Terms, Terms]:
        """The terms to choose by, one after the other, if other rounding shows at quantisers."""
        alike = replace(self, recomputes=False)
        return alike, replace(alike, keeps_sums=True)

    @property
    def leaves_bytes(self) -> bool:
        """Whether what runtimes compute in bytes may be stated such that they compute in floats."""
        is_count = self.objective is Objective.COUNT
        return is_count and self.target.einsum and self.target.count_above_speed

    @property
    def frees(self) -> bool:
        """Whether anything of the interface may change."""
        return self.free_inputs or self.free_outputs

    @property
    def settings(self) -> dict[str, Any]:
        """The terms as a certificate writes them down."""
        return {
            "target": self.target.name,
            "keep": list(self.target.gate.selectors),
            "einsum": self.target.einsum,
            "keep_size": self.target.keep_size,
            "minimize": self.objective.value,
            "dims": dict(self.dims),
            **{name: getattr(self, name) for name in FLAGS},
        }

    def of(self, part: Part) -> Terms:
        """The terms of a part: only the borders of the main graph are the model's."""
        if part.is_main:
            return self
        return replace(self, free_inputs=False, free_outputs=False)


def formulate(part: Part, terms: Terms) -> Formulation:
    """The problem of choosing an order for every tensor of a graph and the bodies in it."""
    drafting = _Drafting(part, terms.of(part))
    drafting.spread()
    return drafting.finish()


Weigh: TypeAlias = Callable[[int, int], int]
"""One price from bytes moved and Transposes."""


def _weighing(
    objective: Objective, copies: Sequence[int], extras: Sequence[Sequence[int]], lacking: int
) -> Weigh:
    """Prices in which the secondary figure can never add up to one unit of the primary.

    `copies` are the bytes of all copies that there can be, `extras` those of the restatements of
    each node, and `lacking` the operators that a lack of kernels can cost something.
    """
    most = len(copies) + COPIES_WITHOUT_KERNEL * lacking
    moved = sum(copies) + sum(map(max, extras))
    unit = math.gcd(*copies, *(extra for node in extras for extra in node)) or 1
    if objective is Objective.BYTES:
        return lambda size, count: size // unit * (most + 1) + count
    return lambda size, count: count * (moved // unit + 1) + size // unit


class _Drafting:
    """Carries orders through a part until no new one appears."""

    def __init__(self, part: Part, terms: Terms) -> None:
        self.part = part
        self.terms = terms
        self.frames = Frames(part.regions)
        self.tensors: dict[ir.Value, Tensor] = {}
        self.drafts: list[Draft] = []
        self.dissolved: list[ir.Node] = []
        self.tied: dict[ir.Node, tuple[int, ...]] = {}
        self.touching: dict[ir.Value, list[tuple[Draft, int, Frame]]] = {}
        self.waiting: deque[tuple[Tensor, Permutation]] = deque()
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
        if isinstance(draft, NodeDraft):
            self.tied[draft.node] = tied_operands(draft.node)
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
        if self.terms.target.keep_size and self._stores_twice(draft, transport):
            return
        if len(draft.variants) >= VARIANTS_PER_NODE:
            return
        reads, writes = draft.orders(transport)
        read = [self._want(frame, o) for frame, o in zip(draft.operands, reads, strict=True)]
        written = [self._want(frame, o) for frame, o in zip(draft.results, writes, strict=True)]
        if None in read or None in written:
            return
        ports = (tuple(p or 0 for p in read), tuple(p or 0 for p in written))
        form = ports, draft.lacks_kernel(transport)
        other = draft.variants.setdefault(form, transport)
        if self._extra_bytes(draft, transport) < self._extra_bytes(draft, other):
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

    def _want(self, frame: Frame, order: Permutation | None) -> int | None:
        """The place of an order among the candidates of its tensor; None if it cannot be one."""
        if not frame.admits(order):
            return None
        tensor, stored = self.tensors[frame.tensor], frame.stored(order)
        place = tensor.place(stored)
        if place is not None or stored is None:
            return place
        if not tensor.add(stored, is_given=order is None):
            return None
        self.waiting.append((tensor, stored))
        return tensor.place(stored)

    def finish(self) -> Formulation:
        terms = self.terms
        numbers = {value: index for index, value in enumerate(self.tensors)}
        weigh = self._weighing()
        operators = [self._operator(draft, numbers, weigh) for draft in self.drafts]
        made = {value for operator in operators for value in operator.results}
        given = [value for value, number in numbers.items() if number not in made]
        sources = [self._source(value, numbers, free=terms.free_inputs) for value in given]
        sinks = [self._sink(frame, numbers, free=terms.free_outputs) for frame in self.outputs]
        colours = infer_colours(self.part.region(n).view(n) for n in self.part.nodes()).colours
        values = [
            Value(
                str(tensor.value.name),
                tuple("?" if order is None else str(order) for order in tensor.orders),
                self._copy_price(tensor, tensor.bytes_moved(terms.dims), weigh),
                colours[tensor.value].layout_class if tensor.value in colours else None,
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
            max(self._cost_given(weigh), evaluate(problem, as_given(problem)) or 0),
            tuple(self._notes()),
            self.is_quantised,
        )

    def _weighing(self) -> Weigh:
        copies = [
            tensor.bytes_moved(self.terms.dims)
            for tensor in self.tensors.values()
            if not self._is_folded(tensor)
            for _ in tensor.orders[1:]
        ]
        extras = [
            [self._extra_bytes(draft, transport) for transport in draft.variants.values()]
            for draft in self.drafts
        ]
        lacking = sum(draft.lacks_kernel(draft.given) for draft in self.drafts)
        weigh = _weighing(self.terms.objective, copies, extras, lacking)
        # Among choices that move the same, one that stores fewer constants twice costs least.
        most = sum(bool(self.tied.get(draft.node)) for draft in self.drafts)
        most += sum(len(t.orders) - 1 for t in self.tensors.values() if self._is_folded(t))
        return weigh if not most else lambda size, count: (most + 1) * weigh(size, count)

    def _cost_given(self, weigh: Weigh) -> int:
        """The price of the Transposes as they stand: in loops, and in each branch that has them."""
        within = sum(self._price(draft, draft.given, weigh) for draft in self.drafts)
        return within + sum(
            self._copy_price(self._tensor_of(node), self._bytes_given(node), weigh)
            for node in self.dissolved
            if node.inputs[0] is not None
            and self._want(self.frames.of(node.inputs[0]), None)
            != self._want(self.frames.of(node.outputs[0]), None)
        )

    def _is_folded(self, tensor: Tensor) -> bool:
        """Whether copies of a tensor are made at compile time, as constants of their own."""
        return constant_of(tensor.value) is not None and not self.terms.target.keep_size

    def _copy_price(self, tensor: Tensor, size: int, weigh: Weigh) -> int:
        return 1 if self._is_folded(tensor) else weigh(size, 1)

    def _tensor_of(self, node: ir.Node) -> Tensor:
        return self.tensors[self.frames.of(node.outputs[0]).tensor]

    def _bytes_given(self, node: ir.Node) -> int:
        tensor = self._tensor_of(node)
        runs = self.part.runs[self.part.parent_graph(node)]
        return tensor.bytes_moved(self.terms.dims) // tensor.runs * runs

    def _extra_bytes(self, draft: Draft, transport: Transport) -> int:
        runs = self.part.runs[self.part.parent_graph(draft.node)]
        return runs * draft.extra_bytes(transport, self.terms.dims)

    def _operator(self, draft: Draft, numbers: Mapping[ir.Value, int], weigh: Weigh) -> Operator:
        return Operator(
            draft.name,
            tuple(numbers[frame.tensor] for frame in draft.operands),
            tuple(numbers[frame.tensor] for frame in draft.results),
            tuple(
                Variant(*ports, self._price(draft, transport, weigh), key)
                for key, ((ports, _), transport) in enumerate(draft.variants.items())
            ),
        )

    def _price(self, draft: Draft, transport: Transport, weigh: Weigh) -> int:
        count = COPIES_WITHOUT_KERNEL if draft.lacks_kernel(transport) else 0
        return weigh(self._extra_bytes(draft, transport), count) + self._stores_twice(
            draft, transport
        )

    def _stores_twice(self, draft: Draft, transport: Transport) -> bool:
        tied = self.tied.get(draft.node, ())
        return bool(tied) and stores_twice(tied, transport)

    def _source(self, value: ir.Value, numbers: Mapping[ir.Value, int], *, free: bool) -> Operator:
        """What comes from outside; an input that is free comes in any order, for nothing."""
        is_free = free and value in self.part.root.graph.inputs and not value.is_initializer()
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
            f"{len(full)} tensors have more candidate orders than are considered, {full[0]!r} first"
        ]
