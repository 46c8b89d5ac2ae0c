"""What is lost where a runtime joins several nodes into one operator, but not in every order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from relayout.graph.read import shape_of
from relayout.ops.measure import bytes_of, lengths_of
from relayout.targets.prices.table import RuntimePrices

LONG_RUN = 16
"""Elements with which a run takes as long as they do, and its beginning nothing more."""


@dataclass(frozen=True, slots=True)
class Parted:
    """Nodes that stay apart in some order, beyond the one operator that they could be."""

    kernels: int
    """How many more are started."""
    passes: int
    """How often more a tensor is read and written."""
    tensor: ir.Value
    together: tuple[int, ...] = ()
    """The axes of the tensor that make one run, where a kernel goes through it run by run."""

    def bytes(self, dims: Mapping[str, int]) -> int:
        """What is read and written again."""
        return self.passes * 2 * bytes_of(self.tensor, dims)

    def nanoseconds(self, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
        """What that takes by the prices of a runtime."""
        apart = self.kernels * prices.node + prices.stream(self.bytes(dims))
        return apart + prices.runs(self._runs(dims))

    def _runs(self, dims: Mapping[str, int]) -> int:
        shape = shape_of(self.tensor)
        if not self.together or shape is None:
            return 0
        lengths = lengths_of(shape, dims)
        run = prod(lengths[axis] for axis in self.together)
        return prod(lengths) // run if 0 < run < LONG_RUN else 0
