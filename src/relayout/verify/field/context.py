"""What all operators of one run share: its seed, its limits, and which branches are taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relayout.verify.field.values import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """How much one run may do.

    Elements that are computed, of all tensors and of one; products of all sums; rounds of a loop.
    """

    elements: int = 200_000_000
    at_once: int = 30_000_000
    products: int = 12_000_000_000
    rounds: int = 2_000


@dataclass(slots=True)
class FieldContext:
    """`forced` is the branch that every If on values of the inputs takes, or None.

    `decided` states whether there was such an If.
    """

    seed: int
    limits: WorkLimits = field(default_factory=WorkLimits)
    forced: bool | None = None
    decided: bool = False
    elements: int = 0
    products: int = 0

    def check(self, shape: Sequence[int]) -> int:
        """Refuse a tensor that is about to be made if it is too large; how many elements it has."""
        count = math.prod(int(length) for length in shape)
        if count > self.limits.at_once:
            raise TooLargeError(f"a tensor of {count} elements")
        if self.elements + count > self.limits.elements:
            raise TooLargeError(f"more than {self.limits.elements} elements in all")
        return count

    def computed(self, shape: Sequence[int]) -> None:
        """Count a tensor that was computed."""
        self.elements += self.check(shape)

    def multiply(self, count: int) -> None:
        """Count products that are about to be summed."""
        self.products += count
        if self.products > self.limits.products:
            raise TooLargeError(f"more than {self.limits.products} products in all")
