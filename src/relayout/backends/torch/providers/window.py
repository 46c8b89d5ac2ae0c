"""How a convolution or a pool slides over its operand, and lengths to time it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from relayout.graph.read import shape_of
from relayout.ops.measure import NOMINAL_LENGTH

Lengths: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sliding:
    """A window over two spatial axes, and the shapes it leads from and to."""

    source: tuple[int, int, int, int]
    result: tuple[int, int, int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    groups: int

    @property
    def is_pointwise(self) -> bool:
        """A product of every pixel with a matrix."""
        is_plain = self.kernel == self.strides == (1, 1) and self.groups == 1
        return is_plain and self.pads == (0, 0, 0, 0)

    @property
    def is_tiled(self) -> bool:
        """Whether windows of more than one pixel cut the operand into parts, with nothing left."""
        rows, columns = self.kernel
        is_cut = self.kernel == self.strides != (1, 1) and self.pads == (0, 0, 0, 0)
        is_plain = self.groups == 1 and self.dilations == (1, 1)
        return is_cut and is_plain and not (self.source[2] % rows or self.source[3] % columns)

    @property
    def padding(self) -> tuple[int, int] | None:
        """The padding that is the same on both sides, or None where the sides differ."""
        top, left, bottom, right = self.pads
        return (top, left) if (top, left) == (bottom, right) else None


def pointwise(source: tuple[int, int, int, int], depth: int) -> Sliding:
    """A product of every pixel with a matrix of so many columns."""
    result = (source[0], depth, source[2], source[3])
    return Sliding(source, result, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1)


def known_shape(value: ir.Value | None) -> Lengths | None:
    """The lengths of a value, if all of them are numbers."""
    shape = shape_of(value)
    if shape is None or not all(isinstance(length, int) for length in shape):
        return None
    return tuple(int(length) for length in shape if isinstance(length, int))


def assumed_shape(value: ir.Value | None, dims: Mapping[str, int]) -> Lengths | None:
    """The lengths of a value; one known only at run time is the given one of its name, if any.

    Otherwise a batch is 1, and other lengths are those assumed in reports.
    """
    shape = shape_of(value)
    if shape is None:
        return None
    return tuple(
        length if isinstance(length, int) else dims.get(length or "", NOMINAL_LENGTH if axis else 1)
        for axis, length in enumerate(shape)
    )


def sliding_of(
    node: ir.Node, shape: Callable[[ir.Value | None], Lengths | None] = known_shape
) -> Sliding | None:
    """The window of a Conv or MaxPool over two axes; None where something is unknown or rare."""
    source, result = shape(node.inputs[0]), shape(node.outputs[0])
    if source is None or result is None or len(source) != 4 or len(result) != 4:
        return None
    if node.attributes.get_string("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}:
        return None
    is_conv = node.op_type == "Conv"
    weight = known_shape(node.inputs[1]) if is_conv else None
    kernel = weight[2:] if weight is not None else _pair(node, "kernel_shape")
    pads = node.attributes.get_ints("pads", [0, 0, 0, 0])
    if kernel is None or len(pads) != 4 or min(pads) < 0:
        return None
    return Sliding(
        (source[0], source[1], source[2], source[3]),
        (result[0], result[1], result[2], result[3]),
        (kernel[0], kernel[1]),
        _pair(node, "strides") or (1, 1),
        (pads[0], pads[1], pads[2], pads[3]),
        _pair(node, "dilations") or (1, 1),
        node.attributes.get_int("group", 1),
    )


def _pair(node: ir.Node, name: str) -> tuple[int, int] | None:
    values = node.attributes.get_ints(name, [])
    return (values[0], values[1]) if len(values) == 2 else None
