"""The shapes of a model's tensors by its open lengths, and what these must be equal to.

As far as they follow from the graph: what is not known stays unknown, and claims of the file about
tensors inside of it are not read. A length that is not known but must exist is an open one too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from relayout.verify.proof.lengths import Length, minus, product, quotient, symbol, times

OpenShape: TypeAlias = "list[Length | None]"
MOST_NUMBERS = 16
WHOLE = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


@dataclass
class Shapes:
    """What is known so far. `numbers` are tensors that hold lengths, as a flat list."""

    dims: dict[str, OpenShape] = field(default_factory=dict)
    numbers: dict[str, OpenShape] = field(default_factory=dict)
    factors: dict[str, list[float]] = field(default_factory=dict)
    """Constants that hold a few floats, as scales of pictures do."""
    fed: dict[str, list[str]] = field(default_factory=dict)
    """Inputs that may hold lengths, and how these are called."""
    equations: list[Length] = field(default_factory=list)
    """Lengths that are zero."""
    inner: list[str] = field(default_factory=list)
    """Open lengths of tensors that are computed."""

    def inside(self) -> Shapes:
        """What is known in the body of a node, or of a function: what is outside, to begin with."""
        return replace(self, dims=dict(self.dims), numbers=dict(self.numbers))

    def add_constant(self, name: str, tensor: onnx.TensorProto) -> None:
        self.dims[name] = list(tensor.dims)
        if len(tensor.dims) > 1 or np.prod(tensor.dims) > MOST_NUMBERS or tensor.external_data:
            return
        if tensor.data_type in WHOLE:
            self.numbers[name] = [int(number) for number in numpy_helper.to_array(tensor).flat]
        elif tensor.data_type == onnx.TensorProto.FLOAT:
            self.factors[name] = [float(number) for number in numpy_helper.to_array(tensor).flat]

    def of_input(self, node: onnx.NodeProto, i: int) -> OpenShape | None:
        return self.dims.get(node.input[i]) if i < len(node.input) else None

    def numbers_of(self, node: onnx.NodeProto, i: int) -> OpenShape | None:
        return self.numbers.get(node.input[i]) if i < len(node.input) else None

    def fixed(self, node: onnx.NodeProto, i: int) -> list[int] | None:
        """The numbers of an operand that are constant."""
        found = self.numbers_of(node, i)
        numbers = [number for number in found or () if isinstance(number, int)]
        return None if found is None or len(numbers) < len(found) else numbers

    def equal(self, left: Length | None, right: Length | None) -> None:
        if left is not None and right is not None and left != right:
            self.equations.append(minus(left, right))

    def same(self, left: OpenShape | None, right: OpenShape) -> None:
        """States that two tensors, if there is the first, have one shape."""
        for one, other in zip(left or (), right, strict=False):
            self.equal(one, other)

    def part(self, whole: Length | None, count: Length | None) -> Length | None:
        """The length of which there are so many in the whole."""
        if whole is None or count is None:
            return None
        exact = quotient(whole, count)
        if exact is not None:
            return exact
        self.inner.append(f"inner {len(self.inner)}")
        found = symbol(self.inner[-1])
        self.equal(whole, times(found, count))
        return found

    def as_many(self, dims: OpenShape, target: OpenShape) -> None:
        """States that shapes have equally many elements."""
        left, right = list(dims), []
        for size in target:
            if size in left:
                left.remove(size)
            else:
                right.append(size)
        self.equal(elements(left), elements(right))

    def broadcast(self, shapes: Iterable[OpenShape | None]) -> OpenShape | None:
        found: OpenShape = []
        for dims in shapes:
            if dims is None:
                return None
            width = max(len(found), len(dims))
            left: OpenShape = [*[1] * (width - len(found)), *found]
            right: OpenShape = [*[1] * (width - len(dims)), *dims]
            found = [self._wider(*pair) for pair in zip(left, right, strict=True)]
        return found

    def _wider(self, left: Length | None, right: Length | None) -> Length | None:
        if left == 1 or left is None:
            return right
        if right == 1 or right is None:
            return left
        self.equal(left, right)
        return left if isinstance(left, int) else right


def elements(dims: Iterable[Length | None]) -> Length | None:
    """How many elements a shape has."""
    known = list(dims)
    sizes = [size for size in known if size is not None]
    return product(sizes) if len(sizes) == len(known) else None


def attribute(node: onnx.NodeProto, name: str, usual: int) -> int:
    found = integer(node, name)
    return usual if found is None else found


def integer(node: onnx.NodeProto, name: str) -> int | None:
    return next((one.i for one in node.attribute if one.name == name), None)


def integers(node: onnx.NodeProto, name: str) -> list[int] | None:
    return next((list(one.ints) for one in node.attribute if one.name == name), None)


def text(node: onnx.NodeProto, name: str, usual: str) -> str:
    return next((one.s.decode() for one in node.attribute if one.name == name), usual)


def axes_of(found: Shapes, node: onnx.NodeProto) -> list[int] | None:
    """Axes as an attribute, as they were, or as an operand, as they are."""
    return integers(node, "axes") or found.fixed(node, 1)
