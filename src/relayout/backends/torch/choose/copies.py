"""Copies of tensors from one memory format to the other, as work that is timed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.choose.choices import PricedCandidate
from relayout.backends.torch.providers.conv_groups import ORDER_WORDS
from relayout.backends.torch.providers.orders import FIRST, LAST, OrderCopy
from relayout.backends.torch.providers.prices import Prices
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import Work, WorkDescription


@dataclass(frozen=True)
class OrderCopyWork(Work):
    """A tensor of four axes, stored in the other order."""

    @classmethod
    def of(cls, value: ir.Value, site: Site) -> OrderCopyWork | None:
        """None where both orders are the same."""
        lengths = site.shape(value) or ()
        if lengths[1] == 1 or math.prod(lengths[2:]) == 1:
            return None
        return cls((), (value,), (value,))

    @property
    def candidates(self) -> tuple[OrderCopy, OrderCopy]:
        """To channels last, and to channels first."""
        (value,) = self.operands
        return OrderCopy(value, FIRST, LAST), OrderCopy(value, LAST, FIRST)

    def key(self, site: Site) -> str:
        lengths = site.shape(self.operands[0]) or ()
        return f"copy {'x'.join(map(str, lengths))} {site.precision.reduced.name}"

    def description(self, site: Site) -> WorkDescription:
        lengths = site.shape(self.operands[0]) or ()
        return WorkDescription("copy", lengths, lengths, dtype=site.dtype)

    def options(self, site: Site, prices: Prices) -> tuple[PricedCandidate, ...]:
        known = prices.known.get(self.key(site), {})
        return tuple(
            PricedCandidate(
                "torch", each.name, f"to {ORDER_WORDS[each.writes]}", known.get(each.name)
            )
            for each in self.candidates
        )
