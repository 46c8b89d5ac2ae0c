"""What is lost where a runtime joins several nodes into one operator, but not in every order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from relayout.ops.measure import bytes_of
from relayout.targets.prices.table import RuntimePrices


@dataclass(frozen=True, slots=True)
class Parted:
    """Nodes that stay apart in some order, beyond the one operator that they could be."""

    kernels: int
    """How many more are started."""
    passes: int
    """How often more a tensor is read and written."""
    tensor: ir.Value

    def bytes(self, dims: Mapping[str, int]) -> int:
        """What is read and written again."""
        return self.passes * 2 * bytes_of(self.tensor, dims)

    def nanoseconds(self, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
        """What that takes by the prices of a runtime."""
        return self.kernels * prices.node + prices.stream(self.bytes(dims))
