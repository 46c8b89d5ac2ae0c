"""How a convolution or a pool slides over its operand, where all lengths are known."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.read import shape_of


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
        plain = self.kernel == (1, 1) == self.strides and self.pads == (0, 0, 0, 0)
        return plain and self.groups == 1

    @property
    def padding(self) -> tuple[int, int] | None:
        """What stands on both sides alike, or None where the sides differ."""
        top, left, bottom, right = self.pads
        return (top, left) if (top, left) == (bottom, right) else None


def known_shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The lengths of a value, if all of them are numbers."""
    shape = shape_of(value)
    if shape is None or not all(isinstance(length, int) for length in shape):
        return None
    return tuple(int(length) for length in shape if isinstance(length, int))


def sliding_of(node: ir.Node) -> Sliding | None:
    """The window of a Conv or MaxPool over two axes; None where something is unknown or rare."""
    source, result = known_shape(node.inputs[0]), known_shape(node.outputs[0])
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
