"""What the variants of operators and the copies of tensors cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from relayout.assign.drafts import Draft, NodeDraft
from relayout.assign.frames import Tensor
from relayout.assign.part import Part
from relayout.assign.problem import CopyPrice
from relayout.assign.terms import Terms
from relayout.assign.tied import stores_twice, tied_operands
from relayout.graph.read import constant_of
from relayout.layout.transport import Transport
from relayout.ops.measure import Objective

COPIES_WITHOUT_KERNEL = 4
"""Twice the copies around an operator that the target cannot run in an order."""

Weigh: TypeAlias = Callable[[int, int], int]
"""One price from bytes moved and Transposes."""


def _weighing(
    objective: Objective, copies: Sequence[int], extras: Sequence[Sequence[int]], counted: int
) -> Weigh:
    """Prices in which the secondary figure can never add up to one unit of the primary.

    `copies` are the bytes of all copies that there can be, `extras` those of the restatements of
    each node, and `counted` how many Transposes operators can count as at most.
    """
    most = len(copies) + counted
    moved = sum(copies) + sum(map(max, extras))
    unit = math.gcd(*copies, *(extra for node in extras for extra in node)) or 1
    if objective is Objective.BYTES:
        return lambda size, count: size // unit * (most + 1) + count
    return lambda size, count: count * (moved // unit + 1) + size // unit


@dataclass(slots=True)
class Pricing:
    """What is known of costs before all variants are."""

    part: Part
    terms: Terms
    _tied: dict[ir.Node, tuple[int, ...]] = field(default_factory=dict)

    def extra_bytes(self, draft: Draft, transport: Transport) -> int:
        """What a restatement moves beyond what the model does as given."""
        runs = self.part.runs[self.part.parent_graph(draft.node)]
        counted = draft.moved_bytes if self.terms.ignores_passes else draft.extra_bytes
        return runs * counted(transport, self.terms.dims)

    def ignored_passes(self, transport: Transport) -> int:
        """How often a restatement reads a tensor again, where that only decides between equals."""
        return transport.changes.extra_passes if self.terms.ignores_passes else 0

    def stores_twice(self, draft: Draft, transport: Transport) -> bool:
        """Whether a restatement needs a constant in another form than its other readers."""
        tied = self._tied_operands(draft)
        return bool(tied) and stores_twice(tied, transport)

    def is_folded(self, tensor: Tensor) -> bool:
        """Whether copies of a tensor are made at compile time, as constants of their own."""
        return constant_of(tensor.value) is not None and not self.terms.target.keep_size

    def bytes_moved(self, tensor: Tensor) -> int:
        return tensor.bytes_moved(self.terms.dims)

    def settled(self, drafts: Sequence[Draft], tensors: Collection[Tensor]) -> CostTable:
        """The costs, once all variants and orders are known."""
        weigh = self._weighing(drafts, tensors)
        costs = CostTable(self, weigh)
        if not any(tensor.shuffles for tensor in tensors):
            return costs
        running = (
            max(costs.of_variant(draft, transport) for transport in draft.variants.values())
            for draft in drafts
        )
        copies = (
            costs.of_copy(tensor, self.bytes_moved(tensor)) * len(tensor.orders)
            for tensor in tensors
        )
        return CostTable(self, weigh, 1 + sum(running) + sum(copies))

    def _weighing(self, drafts: Sequence[Draft], tensors: Collection[Tensor]) -> Weigh:
        copies = [
            self.bytes_moved(tensor)
            for tensor in tensors
            if not self.is_folded(tensor)
            for _ in tensor.orders[1:]
        ]
        extras = [
            [self.extra_bytes(draft, transport) for transport in draft.variants.values()]
            for draft in drafts
        ]
        most = COPIES_WITHOUT_KERNEL * sum(draft.lacks_kernel(draft.given) for draft in drafts)
        most += sum(any(form.changes.copies for form in each.variants.values()) for each in drafts)
        weigh = _weighing(self.terms.objective, copies, extras, most)
        # Of choices that move the same, fewer passes and fewer constants stored twice decide.
        most = sum(bool(self._tied_operands(draft)) for draft in drafts)
        most += sum(max(map(self.ignored_passes, draft.variants.values())) for draft in drafts)
        most += sum(len(tensor.orders) - 1 for tensor in tensors if self.is_folded(tensor))
        return weigh if not most else lambda size, count: (most + 1) * weigh(size, count)

    def _tied_operands(self, draft: Draft) -> tuple[int, ...]:
        if not isinstance(draft, NodeDraft):
            return ()
        if draft.node not in self._tied:
            self._tied[draft.node] = tied_operands(draft.node)
        return self._tied[draft.node]


@dataclass(frozen=True, slots=True)
class CostTable:
    """What everything costs, in units that compare bytes and Transposes."""

    pricing: Pricing
    weigh: Weigh
    forbidden: int = 0
    """More than any choice costs that makes no copy of a shuffle; 0 where there is no shuffle."""

    def of_variant(self, draft: Draft, transport: Transport) -> int:
        count = COPIES_WITHOUT_KERNEL if draft.lacks_kernel(transport) else 0
        count += transport.changes.copies
        price = self.weigh(self.pricing.extra_bytes(draft, transport), count)
        ties = self.pricing.ignored_passes(transport) + self.pricing.stores_twice(draft, transport)
        return price + ties

    def of_copy(self, tensor: Tensor, size: int) -> int:
        """A copy that moves so many bytes."""
        return 1 if self.pricing.is_folded(tensor) else self.weigh(size, 1)

    def of_copies(self, tensor: Tensor) -> CopyPrice:
        """No Transpose leads to a shuffle or away from it."""
        price, shuffles = self.of_copy(tensor, self.pricing.bytes_moved(tensor)), tensor.shuffles
        if not shuffles:
            return price
        places = range(len(tensor.orders))
        return tuple(
            tuple(self.forbidden if shuffles & {stored, wanted} else price for wanted in places)
            for stored in places
        )
