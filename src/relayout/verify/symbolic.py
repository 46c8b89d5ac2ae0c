"""The shapes of a model's tensors by its open lengths, and what these must be equal to.

As far as they follow from the main graph: what is not known stays unknown, and claims of the file
about tensors inside of it are not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from relayout.verify.linear import OpenLength

if TYPE_CHECKING:
    pass

OpenShape: TypeAlias = "list[OpenLength | None]"
ONE = OpenLength.of(1)
MOST_NUMBERS = 16


@dataclass
class Shapes:
    """What is known so far. `numbers` are tensors that hold lengths, as a flat list."""

    dims: dict[str, OpenShape] = field(default_factory=dict)
    numbers: dict[str, OpenShape] = field(default_factory=dict)
    equations: list[OpenLength] = field(default_factory=list)
    """Lengths that are zero."""

    def add_constant(self, name: str, tensor: onnx.TensorProto) -> None:
        self.dims[name] = [OpenLength.of(size) for size in tensor.dims]
        whole = tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
        if whole and np.prod(tensor.dims) <= MOST_NUMBERS and not tensor.external_data:
            array = numpy_helper.to_array(tensor)
            self.numbers[name] = [OpenLength.of(int(number)) for number in array.flat]

    def of_input(self, node: onnx.NodeProto, i: int) -> OpenShape | None:
        return self.dims.get(node.input[i]) if i < len(node.input) else None

    def fixed(self, node: onnx.NodeProto, i: int) -> list[int] | None:
        """The numbers of an operand that are constant."""
        found = self.numbers.get(node.input[i]) if i < len(node.input) else None
        numbers = [None if one is None else one.fixed for one in found or ()]
        if found is None or any(number is None for number in numbers):
            return None
        return [number for number in numbers if number is not None]

    def equal(self, left: OpenLength | None, right: OpenLength | None) -> None:
        if left is not None and right is not None and left != right:
            self.equations.append(left - right)

    def broadcast(self, shapes: Iterable[OpenShape | None]) -> OpenShape | None:
        found: OpenShape = []
        for dims in shapes:
            if dims is None:
                return None
            width = max(len(found), len(dims))
            left = [ONE] * (width - len(found)) + found
            right = [ONE] * (width - len(dims)) + dims
            found = [self._wider(*pair) for pair in zip(left, right, strict=True)]
        return found

    def _wider(self, left: OpenLength | None, right: OpenLength | None) -> OpenLength | None:
        if left == ONE or left is None:
            return right
        if right == ONE or right is None:
            return left
        self.equal(left, right)
        return left if left.fixed is not None else right
