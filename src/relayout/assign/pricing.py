"""What the variants of operators and the copies of tensors cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from relayout.assign.drafts import Draft, NodeDraft
from relayout.assign.frames import Tensor
from relayout.assign.part import Part
from relayout.assign.problem import CopyPrice
from relayout.assign.rulers import BytesRuler, Ruler, TimeRuler
from relayout.assign.terms import Terms
from relayout.assign.tied import stores_twice, tied_operands
from relayout.graph.read import constant_of
from relayout.layout.transport import Transport
from relayout.ops.measure import Objective
from relayout.ops.quantised_groups import breaks_quantised_group
from relayout.targets.products import has_constant_first

COPIES_WITHOUT_KERNEL = 4
"""Twice the copies around an operator that the target cannot run in an order."""

Weigh: TypeAlias = Callable[[int, int], int]
"""One price from what the ruler measures and from Transposes."""


def _weighing(
    objective: Objective, copies: Sequence[int], extras: Sequence[Sequence[int]], counted: int
) -> Weigh:
    """RuntimePrices in which the secondary figure can never add up to one unit of the primary.

    `copies` are what all copies take that there can be, `extras` what the restatements of
    each node do, and `counted` how many Transposes operators can count as at most.
    """
    most = len(copies) + counted
    moved = sum(copies) + sum(map(max, extras))
    unit = math.gcd(*copies, *(extra for node in extras for extra in node)) or 1
    if objective is Objective.COUNT:
        return lambda size, count: count * (moved // unit + 1) + size // unit
    return lambda size, count: size // unit * (most + 1) + count


def _ruler(terms: Terms) -> Ruler:
    if terms.prices is not None:
        return TimeRuler(terms.dims, terms.prices, terms.target.parted)
    profile = terms.target.profile
    limited = profile if profile is not None and profile.limits_transposes else None
    parted = terms.target.parted if terms.keeps_joined else None
    return BytesRuler(terms.dims, terms.ignores_passes, limited, parted)


class Pricing:
    """What is known of costs before all variants are."""

    def __init__(self, part: Part, terms: Terms) -> None:
        self.part, self.terms, self.ruler = part, terms, _ruler(terms)
        self._tied: dict[ir.Node, tuple[int, ...]] = {}

    def extra(self, draft: Draft, transport: Transport) -> int:
        """What a restatement takes beyond what the model does as given."""
        runs = self.part.runs[self.part.parent_graph(draft.node)]
        return runs * self.ruler.extra(draft, transport)

    def ignored_passes(self, transport: Transport) -> int:
        """How often a restatement reads a tensor again, where that only decides between equals."""
        return transport.changes.extra_passes if self.terms.ignores_passes else 0

    def stores_twice(self, draft: Draft, transport: Transport) -> bool:
        """Whether a restatement needs a constant in another form than its other readers."""
        tied = self._tied_operands(draft)
        return bool(tied) and stores_twice(tied, transport)

    def leaves_bytes(self, draft: Draft, transport: Transport) -> bool:
        """Whether a restatement is computed in floats where the given node is in bytes."""
        return self.terms.leaves_bytes and breaks_quantised_group(draft.node, transport.changes)

    def turns_product(self, draft: Draft, transport: Transport) -> bool:
        """Whether a restatement multiplies by a constant in a form that the target is slow at."""
        wants_second = self.terms.target.matrix_second
        return wants_second and has_constant_first(draft.node, transport.changes)

    def ties(self, draft: Draft, transport: Transport) -> int:
        """What decides between choices that move the same."""
        return (
            self.ignored_passes(transport)
            + self.stores_twice(draft, transport)
            + self.leaves_bytes(draft, transport)
            + 2 * self.turns_product(draft, transport)  # so that a constant is worth a copy
        )

    def is_folded(self, tensor: Tensor) -> bool:
        """Whether copies of a tensor are made at compile time, as constants of their own."""
        return constant_of(tensor.value) is not None and not self.terms.target.keep_size

    def copies(self, tensor: Tensor) -> list[list[int]]:
        """What copies of a tensor take, by the orders they lead from and to; one for all if equal.

        A copy runs as often as the tensor is made.
        """
        orders, ruler = tensor.orders, self.ruler
        if ruler.is_uniform:
            return [[tensor.runs * ruler.copy(tensor, None, None)]]
        return [
            [0 if a == b else tensor.runs * ruler.copy(tensor, a, b) for b in orders]
            for a in orders
        ]

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
            costs.of_copy(tensor, max(map(max, self.copies(tensor)))) * len(tensor.orders)
            for tensor in tensors
        )
        return CostTable(self, weigh, 1 + sum(running) + sum(copies))

    def _weighing(self, drafts: Sequence[Draft], tensors: Collection[Tensor]) -> Weigh:
        copies = [
            size
            for tensor in tensors
            if not self.is_folded(tensor) and len(tensor.orders) > 1
            for size in self._sizes(tensor)
        ]
        extras = [
            [self.extra(draft, transport) for transport in draft.variants.values()]
            for draft in drafts
        ]
        most = COPIES_WITHOUT_KERNEL * sum(draft.lacks_kernel(draft.given) for draft in drafts)
        most += sum(any(form.changes.copies for form in each.variants.values()) for each in drafts)
        weigh = _weighing(self.terms.objective, copies, extras, most)
        # Of choices that move the same, fewer passes, constants stored twice, floats and which
        # factor is a constant decide.
        most = sum(max(self.ties(each, form) for form in each.variants.values()) for each in drafts)
        most += sum(len(tensor.orders) - 1 for tensor in tensors if self.is_folded(tensor))
        return weigh if not most else lambda size, count: (most + 1) * weigh(size, count)

    def _sizes(self, tensor: Tensor) -> list[int]:
        """What the copies of a tensor take, of which there are at most as many as other orders."""
        if self.ruler.is_uniform:
            return self.copies(tensor)[0] * (len(tensor.orders) - 1)
        return [size for row in self.copies(tensor) for size in row if size]

    def _tied_operands(self, draft: Draft) -> tuple[int, ...]:
        if not isinstance(draft, NodeDraft):
            return ()
        if draft.node not in self._tied:
            self._tied[draft.node] = tied_operands(draft.node)
        return self._tied[draft.node]


@dataclass(frozen=True, slots=True)
class CostTable:
    """What everything costs, in units that compare what is measured and Transposes."""

    pricing: Pricing
    weigh: Weigh
    forbidden: int = 0
    """More than any choice costs that makes no copy of a shuffle; 0 where there is no shuffle."""

    def of_variant(self, draft: Draft, transport: Transport) -> int:
        count = COPIES_WITHOUT_KERNEL if draft.lacks_kernel(transport) else 0
        count += transport.changes.copies
        price = self.weigh(self.pricing.extra(draft, transport), count)
        return price + self.pricing.ties(draft, transport)

    def of_copy(self, tensor: Tensor, size: int) -> int:
        """A copy that takes so much."""
        return 1 if self.pricing.is_folded(tensor) else self.weigh(size, 1)

    def of_given(self, tensor: Tensor, stored: int, wanted: int, runs: int) -> int:
        """A Transpose of the given model between two orders, run so often."""
        orders = tensor.orders
        size = self.pricing.ruler.copy(tensor, orders[stored], orders[wanted])
        return self.of_copy(tensor, runs * size)

    def of_copies(self, tensor: Tensor) -> CopyPrice:
        """No Transpose leads to a shuffle or away from it."""
        sizes, shuffles = self.pricing.copies(tensor), tensor.shuffles
        places = range(len(tensor.orders))
        if len(sizes) == 1:
            price = self.of_copy(tensor, sizes[0][0])
            if not shuffles:
                return price
            sizes = [sizes[0] * len(places)] * len(places)
        return tuple(
            tuple(
                self.forbidden
                if shuffles & {stored, wanted}
                else self.of_copy(tensor, sizes[stored][wanted])
                for wanted in places
            )
            for stored in places
        )
