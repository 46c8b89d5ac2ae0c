"""Where kernels are to run: what providers ask before they offer one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.backends.torch.program.dtypes import NAMES, Precision
from relayout.backends.torch.providers.window import Lengths, Sliding, assumed_shape, sliding_of
from relayout.graph.read import shape_of


@dataclass(frozen=True, slots=True)
class Site:
    """The device, the precision, and the lengths with which kernels are timed."""

    device: str
    precision: Precision
    opsets: Mapping[str, int]
    dims: Mapping[str, int] = field(default_factory=dict)
    """Lengths of symbols."""

    @property
    def is_cuda(self) -> bool:
        return self.device.startswith("cuda")

    @property
    def is_float32(self) -> bool:
        """Whether what the model has as float32 is computed as such."""
        return self.precision.reduced == ir.DataType.FLOAT

    @property
    def dtype(self) -> str:
        """What float32 is computed in, as torch names it."""
        return NAMES[self.precision.reduced]

    def shape(self, value: ir.Value | None) -> Lengths | None:
        """The lengths with which a value is timed."""
        return assumed_shape(value, self.dims)

    def window(self, node: ir.Node) -> Sliding | None:
        """How a convolution slides over its operand, of the lengths with which it is timed.

        Channels have to be known: they are those of the weights.
        """
        shapes = [shape_of(node.inputs[0]), shape_of(node.outputs[0])]
        if any(
            shape is None or not all(isinstance(n, int) for n in shape[1:2]) for shape in shapes
        ):
            return None
        return sliding_of(node, self.shape)
