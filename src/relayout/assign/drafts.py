"""Nodes, and the borders of their bodies, on their way to operators of a layout problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from relayout.assign.frames import Frame
from relayout.assign.variants import NodeVariants
from relayout.graph.read import Shape, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle, StoredOrder
from relayout.layout.transport import Transport
from relayout.ops.control import Border, Tie
from relayout.ops.facts import InnerCopies
from relayout.ops.measure import bytes_in_einsum, bytes_in_softmax, bytes_of
from relayout.ops.registry import facts_named
from relayout.ops.rule import unchanged

PortOrders: TypeAlias = Sequence[StoredOrder | None]

VariantPlaces: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The places of the orders a variant reads and writes."""
VariantForm: TypeAlias = tuple[VariantPlaces, bool]
"""The ports of a variant, and whether the target lacks a kernel for it."""


@dataclass(slots=True)
class Draft(ABC):
    """What reads and writes tensors in orders that depend on each other."""

    node: ir.Node
    operands: list[Frame]
    graphs: list[ir.Graph]
    """Where each operand is read."""
    results: list[Frame]
    variants: dict[VariantForm, Transport] = field(default_factory=dict, init=False)
    shuffled: int = field(default=0, init=False)
    """How many of the variants have a shuffle."""

    @property
    def name(self) -> str:
        node = self.node
        return node.name or str(node.outputs[0].name if node.outputs else node.op_type)

    @property
    @abstractmethod
    def given(self) -> Transport:
        """The restatement that changes nothing."""

    @abstractmethod
    def orders(self, transport: Transport) -> tuple[PortOrders, PortOrders]:
        """The orders of operands and results in a restatement."""

    @abstractmethod
    def adds(self, port: int, seen: StoredOrder) -> list[Transport]:
        """The restatements that an order at a port makes worth trying.

        Ports are the operands, then the results.
        """

    @property
    def wanted(self) -> list[Transport]:
        """The restatements that the target has kernels for, where it has none for others."""
        return []

    def lacks_kernel(self, _transport: Transport) -> bool:
        """Whether a restatement is not among the wanted ones, though there are some."""
        return False

    def passed_bytes(self, _transport: Transport, _dims: Mapping[str, int]) -> int:
        """What the steps of a restatement read and write again."""
        return 0

    def moved_bytes(self, _transport: Transport, _dims: Mapping[str, int]) -> int:
        """What a restatement copies beyond what the model does as given."""
        return 0

    def extra_bytes(self, transport: Transport, dims: Mapping[str, int]) -> int:
        """What a restatement moves in any way beyond what the model does as given."""
        return self.passed_bytes(transport, dims) + self.moved_bytes(transport, dims)


@dataclass(slots=True)
class NodeDraft(Draft):
    """A node that follows the rule of its operator."""

    ways: NodeVariants
    result_slots: tuple[int, ...]

    @property
    def given(self) -> Transport:
        return unchanged(self.ways.view)

    def orders(self, transport: Transport) -> tuple[PortOrders, PortOrders]:
        reads = [transport.inputs[index] for index in self.ways.reads]
        writes = [transport.outputs[slot] for slot in self.result_slots]
        return [*reads, *[None] * len(self.ways.captured)], writes

    def adds(self, port: int, seen: StoredOrder) -> list[Transport]:
        is_result = port >= len(self.operands)
        if not is_result and (port >= len(self.ways.reads) or _is_given(seen)):
            return []
        results = self.result_slots
        slot = results[port - len(self.operands)] if is_result else self.ways.reads[port]
        shuffled = self.ways.try_shuffles(slot, is_result=is_result, seen=seen)
        if isinstance(seen, Shuffle):
            return [*shuffled]
        leads = self.ways.leads_to_try(slot, is_result=is_result, seen=seen)
        found = [transport for lead in leads for transport in self.ways.try_lead(lead)]
        found += [] if is_result else self.ways.try_sides(slot, seen)
        found += self.ways.try_separately(slot, is_result=is_result, seen=seen)
        return [*found, *shuffled]

    @property
    def wanted(self) -> list[Transport]:
        order = self.ways.wanted
        return [] if order is None else self.ways.try_lead(order)

    def lacks_kernel(self, transport: Transport) -> bool:
        wanted = self.ways.wanted
        return wanted is not None and transport.inputs[self.ways.lead] != wanted

    def passed_bytes(self, transport: Transport, dims: Mapping[str, int]) -> int:
        passes = transport.changes.extra_passes
        lead = self.node.inputs[self.ways.lead] if passes else None
        return 0 if lead is None else passes * 2 * bytes_of(lead, dims)

    def moved_bytes(self, transport: Transport, dims: Mapping[str, int]) -> int:
        """Without a kernel the target would copy operands and result; it counts as twice that."""
        extra = self._bytes_inside(transport, dims)
        if transport.changes.copies:
            extra += 2 * bytes_of(self.node.outputs[0], dims)
        if not self.lacks_kernel(transport):
            return extra
        read = [self.node.inputs[index] for index in self.ways.reads]
        touched = [value for value in (*read, self.node.outputs[0]) if value is not None]
        return extra + 2 * 2 * sum(bytes_of(value, dims) for value in touched)

    def _bytes_inside(self, transport: Transport, dims: Mapping[str, int]) -> int:
        """What a kernel of the restated node copies, as far as it is known to copy anything."""
        changes, node, view = transport.changes, self.node, self.ways.view
        domain = node.domain if changes.domain is None else changes.domain
        copies = facts_named(domain, changes.op_type or node.op_type).copies
        if copies is InnerCopies.SOFTMAX:
            moved = changes.attributes.get("axis")
            axis = moved if isinstance(moved, int) else view.integer("axis", -1)
            shape = _reordered(shape_of(node.inputs[0]), transport.inputs[0])
            return bytes_in_softmax(view, axis, shape, dims)
        if copies is None:
            return 0
        equation = changes.attributes.get("equation", self.ways.view.string("equation", ""))
        values = [*zip(node.inputs, transport.inputs, strict=True)]
        values += zip(node.outputs, transport.outputs, strict=True)
        shapes = [_reordered(shape_of(value), order) for value, order in values]
        return bytes_in_einsum(str(equation), shapes, node.outputs[0].dtype, dims)


def _is_given(order: StoredOrder) -> bool:
    return isinstance(order, Permutation) and order.is_identity


def _reordered(shape: Shape | None, order: StoredOrder | None) -> Shape | None:
    return shape if shape is None or order is None else order.reorder(shape)


@dataclass(slots=True)
class TieDraft(Draft):
    """Values at the borders of bodies that are stored alike; reads and writes as in the tie."""

    tie: Tie
    reads: tuple[int, ...]
    """Which of the values read are operands: constants and the tie's own results follow."""
    leads: dict[Permutation, Transport] = field(default_factory=dict)
    """The orders of the whole tensor that were tried."""

    @property
    def name(self) -> str:
        return f"{super(TieDraft, self).name} {self.tie.writes[0].value.name}"

    @property
    def given(self) -> Transport:
        return Transport((None,) * len(self.tie.reads), (None,) * len(self.tie.writes))

    def orders(self, transport: Transport) -> tuple[PortOrders, PortOrders]:
        return [transport.inputs[index] for index in self.reads], transport.outputs

    def adds(self, port: int, seen: StoredOrder) -> list[Transport]:
        """Axes of length 1 may stand anywhere, so they are left where the model has them."""
        if isinstance(seen, Shuffle):
            return []
        border = self._border(port)
        shape = shape_of(border.value)
        lead = self.tie.order_for(border, seen if shape is None else seen.settled(shape))
        if lead is None or lead.is_identity or lead in self.leads:
            return []
        self.leads[lead] = Transport(
            tuple(self._order(border, lead) for border in self.tie.reads),
            tuple(self._order(border, lead) for border in self.tie.writes),
        )
        return [self.leads[lead]]

    def _border(self, port: int) -> Border:
        if port < len(self.reads):
            return self.tie.reads[self.reads[port]]
        return self.tie.writes[port - len(self.reads)]

    def lead(self, transport: Transport) -> Permutation | None:
        """The order of the whole tensor in a restatement."""
        return next((lead for lead, other in self.leads.items() if other is transport), None)

    def _order(self, border: Border, lead: Permutation) -> Permutation | None:
        order = self.tie.order_at(border, lead)
        return None if order.is_identity else order


@dataclass(slots=True)
class DemandDraft(Draft):
    """What a node with bodies reads in the given order only, and its bodies give in no other."""

    @property
    def given(self) -> Transport:
        return Transport((None,) * len(self.operands), ())

    def orders(self, transport: Transport) -> tuple[PortOrders, PortOrders]:
        return transport.inputs, transport.outputs

    def adds(self, _port: int, _seen: StoredOrder) -> list[Transport]:
        return []
