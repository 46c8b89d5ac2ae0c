"""How a node is restated where the definition of its operator changed.

Each function edits a node of the version before. What cannot be stated in the newer version, or not
be known to mean the same, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from relayout.ops.versions.old_node import OldNode

VersionStep: TypeAlias = Callable[[OldNode], None]

ZEROS_SINCE = 14
"""From this opset on the target of a Reshape can have a length of 0."""

LARGEST_FLOAT = 3.4028234663852886e38


def dropping(*names: str) -> VersionStep:
    """Attributes that never had a meaning for the result."""
    return lambda old: old.drop(*names)


def in_turn(*steps: VersionStep) -> VersionStep:
    def apply(old: OldNode) -> None:
        for step in steps:
            step(old)

    return apply


def stating(**defaults: object) -> VersionStep:
    """Attributes whose default is another one now, or which only now can be stated."""

    def apply(old: OldNode) -> None:
        for name, value in defaults.items():
            old.set_if_left_out(name, value)

    return apply


def operands(*names: str, at: int = 1, dtype: type = np.int64) -> VersionStep:
    """Attributes that are operands now."""

    def apply(old: OldNode) -> None:
        for index, name in enumerate(names, at):
            old.to_operand(name, index, dtype)

    return apply


def as_inference(old: OldNode) -> None:
    """Training had to be switched off by an attribute."""
    if not old.attribute("is_test", 0):
        old.refuse("it is not marked as inference")
    old.drop("is_test")


def without_unused(first: int) -> VersionStep:
    """Results from one on that mean something else now."""

    def apply(old: OldNode) -> None:
        if any(old.is_read(index) for index in range(first, len(old.node.output))):
            old.refuse(f"its results after the first {first} mean something else there")
        del old.node.output[first:]

    return apply


# elementwise


def right_aligned(old: OldNode) -> None:
    """Before opset 7 an attribute named the axis that the second operand began at."""
    axis = old.attribute("axis")
    old.drop("axis", "broadcast")
    if axis is None:
        return
    one, other = old.shape(0), old.shape(1)
    if one is None or other is None:
        old.refuse("the ranks of its operands are not known")
    missing = len(one) - axis % max(len(one), 1) - len(other)
    if missing > 0:
        axes = list(range(len(other), len(other) + missing))
        wide = old.compute("Unsqueeze", [old.operand(1)], "aligned", axes=axes)
        old.set_operand(1, wide)


def slope_per_channel(old: OldNode) -> None:
    """Before opset 7 the slope was one number, or one for each channel."""
    data, slope = old.shape(0), old.shape(1)
    if slope in {(), (1,)}:
        return
    if data is None or slope is None or len(slope) != 1:
        old.refuse("the shapes of its operands are not known")
    if len(data) > 2:
        axes = list(range(1, len(data) - 1))
        old.set_operand(1, old.compute("Unsqueeze", [old.operand(1)], "aligned", axes=axes))


def clip(old: OldNode) -> None:
    dtype = old.dtype(0)
    if dtype is None:
        old.refuse("its element type is not known")
    for index, (name, default) in enumerate((("min", -LARGEST_FLOAT), ("max", LARGEST_FLOAT)), 1):
        if dtype == ir.DataType.DOUBLE:
            old.set_if_left_out(name, default)
        old.to_operand(name, index, dtype.numpy())


def cast_by_name(old: OldNode) -> None:
    old.set("to", onnx.TensorProto.DataType.Value(old.attribute("to").upper()))


def of_floats(old: OldNode) -> None:
    """An operator that took integers before."""
    dtype = old.dtype(0)
    if dtype is None or not dtype.is_floating_point():
        old.refuse("it may be given integers, which it does not take there")


_SHORT_WITHOUT_INFINITY = {ir.DataType.FLOAT8E4M3FNUZ, ir.DataType.FLOAT8E5M2FNUZ}


def cast_of_infinity(old: OldNode) -> None:
    """From opset 24 on infinity becomes the largest number of a type that has none."""
    if ir.DataType(old.attribute("to")) in _SHORT_WITHOUT_INFINITY:
        old.refuse("infinity becomes another number in this type from opset 24 on")


def cast_like_of_infinity(old: OldNode) -> None:
    if old.dtype(1) in {None, *_SHORT_WITHOUT_INFINITY}:
        old.refuse("infinity may become another number from opset 24 on")


def range_of_halves(old: OldNode) -> None:
    """From opset 27 on the entries of short floats are computed in longer ones."""
    if old.dtype(0) in {None, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}:
        old.refuse("its entries may be float16 or bfloat16, and that changes rounding there")


# shapes and axes


def flattened(old: OldNode) -> None:
    """Before opset 13 the axes from one on were taken together."""
    axis, shape = old.attribute("axis", 1), old.shape(0)
    if shape is not None and _is_alone(axis, shape):
        old.set("axis", axis)
        return
    given = old.operand(0)
    lengths = old.compute("Shape", [given], "shape")
    old.set_operand(0, old.compute("Flatten", [given], "flat", axis=axis))
    old.set("axis", -1)
    allow = {"allowzero": 1} if old.around.version >= ZEROS_SINCE else {}
    old.finish("Reshape", lambda inner: [inner, lengths], **allow)


def _is_alone(axis: int, shape: tuple[int | str | None, ...]) -> bool:
    """Whether all axes after one have length 1."""
    rank = len(shape)
    if not -rank <= axis < rank:
        return False
    return all(length == 1 for length in shape[axis % rank + 1 :])


def reduction(old: OldNode) -> None:
    """No axes at all were all of them, as they are now."""
    if not old.attribute("axes"):
        old.drop("axes")
    old.to_operand("axes", 1)


def squeeze(old: OldNode) -> None:
    """Without an attribute all axes of length 1 go; an empty list of axes is not defined."""
    if old.attribute("axes") == []:
        old.refuse("its list of axes is empty")
    old.to_operand("axes", 1)


def split_evenly(old: OldNode) -> None:
    if not old.operand(1):
        old.set("num_outputs", len(old.node.output))


def slice_operands(old: OldNode) -> None:
    for index, name in enumerate(("starts", "ends", "axes"), 1):
        old.to_operand(name, index)


def pad(old: OldNode) -> None:
    value, dtype = old.attribute("value", 0.0), old.dtype(0)
    old.drop("value")
    old.to_operand("pads", 1)
    if value:
        if dtype is None:
            old.refuse("its element type is not known")
        old.set_operand(2, old.write("value", value, dtype.numpy()))


def split_sizes(old: OldNode) -> None:
    """In opset 1 sizes could be an operand, and the axis had no default."""
    if old.operand(1):
        old.refuse("it gets the sizes of its parts at run time")
    if not old.has("axis"):
        old.refuse("it names no axis")


def top_k(old: OldNode) -> None:
    old.set("k", [old.attribute("k")])
    old.to_operand("k", 1)


def transform_axis(old: OldNode) -> None:
    """The axis was the second by default, and is the last but one."""
    old.set_if_left_out("axis", 1)
    old.to_operand("axis", 2)


def refused(reason: str) -> VersionStep:
    return lambda old: old.refuse(reason)


# pictures


def renamed(op_type: str) -> VersionStep:
    def apply(old: OldNode) -> None:
        old.node.MergeFrom(onnx.NodeProto(op_type=op_type))

    return apply


def resize_of_ten(old: OldNode) -> None:
    """Opset 10 read a nearest neighbour, or two of them, without moving the grid by a half."""
    scales = old.constant(1)
    if old.attribute("mode", "nearest") == "nearest":
        if scales is None or scales.min(initial=1) < 1:
            old.refuse("it may make its operand smaller, for which opset 10 states no neighbour")
        old.set("nearest_mode", "floor")
    old.set("coordinate_transformation_mode", "asymmetric")
    given = old.operand(1)
    old.set_operand(1, old.write("roi", [], np.float32))
    old.set_operand(2, given)


def resize_without_empty(old: OldNode) -> None:
    """Operands that had to be there, without entries, are left out."""
    if old.attribute("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        old.refuse("tf_half_pixel_for_nn ended with opset 12")
    for index in (1, 2):
        if old.shape(index) == (0,):
            old.set_operand(index, "")


def whole_windows(old: OldNode) -> None:
    """From opset 22 on windows that begin in the padding at the end are left out."""
    if not old.attribute("ceil_mode", 0):
        return
    kernel, rank = old.attribute("kernel_shape"), len(old.attribute("kernel_shape"))
    strides, pads = old.attribute("strides", [1] * rank), old.attribute("pads", [0] * (2 * rank))
    dilations, shape = old.attribute("dilations", [1] * rank), old.shape(0)
    if old.attribute("auto_pad", "NOTSET") != "NOTSET" or shape is None:
        old.refuse("the last windows of its ceil_mode are not known")
    for axis, length in enumerate(shape[2:]):
        if not isinstance(length, int):
            old.refuse("the last windows of its ceil_mode are not known")
        span = dilations[axis] * (kernel[axis] - 1) + 1
        room = length + pads[axis] + pads[axis + rank] - span
        last = -(-room // strides[axis]) * strides[axis]
        if last >= length + pads[axis]:
            old.refuse("its last window begins in the padding, and is left out there")


def spatial_only(old: OldNode) -> None:
    if not old.attribute("spatial", 1):
        old.refuse("it normalises every element apart, which ended with opset 8")
    old.drop("spatial")


def parameters_per_channel(old: OldNode) -> None:
    """Before opset 21 a scale and a bias were given for each group."""
    shape, groups = old.shape(0), old.attribute("num_groups")
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    if not isinstance(channels, int) or channels % groups:
        old.refuse("the number of its channels is not known")
    each = channels // groups
    if each == 1:
        return
    column, wide, flat = (
        old.write(what, entries)
        for what, entries in (("column", [groups, 1]), ("wide", [groups, each]), ("flat", [-1]))
    )
    for index in (1, 2):
        given = old.compute("Reshape", [old.operand(index), column], f"group{index}")
        spread = old.compute("Expand", [given, wide], f"spread{index}")
        old.set_operand(index, old.compute("Reshape", [spread, flat], f"channel{index}"))


def sampling_mode(old: OldNode) -> None:
    mode = old.attribute("mode", "bilinear")
    old.set("mode", {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))


def padding_at_the_end(old: OldNode) -> None:
    """Opset 11 puts the odd element of a padding that is not given at the other end."""
    if old.has("output_shape") or old.attribute("auto_pad", "NOTSET").startswith("SAME"):
        old.refuse("where odd padding goes is stated otherwise from opset 11 on")


def index_from_the_front(old: OldNode) -> None:
    """From opset 11 on an index below 0 counts from the end; before it selected nothing."""
    indices, dtype = old.constant(0), old.dtype(0)
    unsigned = dtype is not None and dtype.name.startswith("UINT")
    if not unsigned and (indices is None or indices.min(initial=0) < 0):
        old.refuse("an index below 0 means something else from opset 11 on")
