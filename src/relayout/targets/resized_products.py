"""Products of the channels of images that were enlarged: each pixel of them is multiplied again.

A product of channels gives the same before and after a Resize of the other axes, and before it
there are fewer pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import onnx_ir as ir

from relayout.graph.read import NodeView, Shape, constant_of, is_op, shape_of
from relayout.ops.measure import lengths_of
from relayout.targets.prices.table import PICOSECONDS, RuntimePrices

SCALES, SIZES = 2, 3
"""The places of what a Resize is told, since it may be told sizes."""
FIRST_SCALES = 1
TOLD_SIZES_SINCE = 11
PASS = 64
"""Products of two numbers that take as long as one more pass over an element: to add it to another,
or to find it between its neighbours."""
EXACT_ENOUGH = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE))
"""Types in which sums of sums may be taken in another order; narrower ones lose too much."""


@dataclass(frozen=True, slots=True)
class PixelProduct:
    """A product that sums over the channels of each pixel by itself, with a constant."""

    channels: int
    """The axis of its operand that it sums over."""
    summed: int
    """The axis of the constant that has these channels."""
    outputs: int
    """How many channels it gives."""


@dataclass(frozen=True, slots=True)
class EnlargedPart:
    """Channels that a product reads, and that a Resize gives."""

    index: int
    """Which operand of the Concat it is, if there is one."""
    start: int
    """The first of its channels among those that the product reads."""
    channels: int
    resize: ir.Node
    saved: Fraction
    """Products of two numbers that are saved for each element of the result."""


def enlarged_parts(node: ir.Node, version: int) -> Sequence[EnlargedPart]:
    """What a product had better read before it is enlarged; nothing for other nodes."""
    product = pixel_product(node)
    source = node.inputs[0] if node.inputs else None
    if product is None or source is None:
        return ()
    concat = concat_of(node, product)
    operands = [source] if concat is None else [value for value in concat.inputs if value]
    readers = 1 if concat is None else len(source.uses())
    found, start = [], 0
    for index, value in enumerate(operands):
        shape = shape_of(value)
        channels = None if shape is None or len(shape) < 3 else shape[product.channels]
        if not isinstance(channels, int):
            return ()
        pixels = _pixels_before(value, product.channels, version)
        if pixels is not None:
            is_added = len(operands) > 1
            passes = is_added + max(Fraction(0), 1 - Fraction(channels, product.outputs * readers))
            saved = channels * (1 - pixels) - PASS * passes
            producer = value.producer()
            if saved > 0 and producer is not None:
                found.append(EnlargedPart(index, start, channels, producer, saved))
        start += channels
    return found


def concat_of(node: ir.Node, product: PixelProduct) -> ir.Node | None:
    """The Concat of channels that a product reads, if only such products beside it read it."""
    source = node.inputs[0]
    concat = None if source is None else source.producer()
    if source is None or not _is_known(concat, "Concat") or source.is_graph_output():
        return None
    rank = len(shape_of(source) or ())
    axis = 0 if concat is None else concat.attributes.get_int("axis", 1)
    if rank == 0 or axis % rank != product.channels:
        return None
    if not _is_read_beside(source):
        return None
    readers = [(pixel_product(use.node), use.idx) for use in source.uses()]
    is_shared = all(
        reader is not None and (reader.channels, place) == (product.channels, 0)
        for reader, place in readers
    )
    return concat if is_shared else None


def enlarged_price(view: NodeView, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
    """Nanoseconds that a product takes longer than one before the Resizes that it reads."""
    parts = enlarged_parts(view.node, view.version)
    shape = shape_of(view.node.outputs[0])
    if not parts or shape is None:
        return 0
    products = prod(lengths_of(shape, dims)) * sum(part.saved for part in parts)
    return int(products * prices.columns.product / PICOSECONDS)


def pixel_product(node: ir.Node) -> PixelProduct | None:
    """A convolution with a window of one pixel, or a product of rows and a matrix; or None."""
    weight = node.inputs[1] if _is_known(node, "Conv", "MatMul") and len(node.inputs) > 1 else None
    shape, rank = shape_of(weight), len(shape_of(node.inputs[0] if node.inputs else None) or ())
    if weight is None or constant_of(weight) is None or weight.dtype not in EXACT_ENOUGH:
        return None
    if shape is None or rank < 3 or not all(isinstance(length, int) for length in shape):
        return None
    lengths = [int(str(length)) for length in shape]
    if is_op(node, "MatMul"):
        return PixelProduct(rank - 1, 0, lengths[1]) if len(lengths) == 2 else None
    attributes = node.attributes
    moves = [attributes.get_ints(name, ()) for name in ("strides", "pads")]
    is_still = set(moves[0]) <= {1} and set(moves[1]) <= {0}
    is_plain = is_still and attributes.get_int("group", 1) == 1 and set(lengths[2:]) == {1}
    return PixelProduct(1, 1, lengths[0]) if is_plain else None


def _is_known(node: ir.Node | None, *op_types: str) -> bool:
    """Whether a node is one of these, with attributes that no caller of a function sets."""
    if node is None or not is_op(node, *op_types):
        return False
    return not any(attribute.is_ref() for attribute in node.attributes.values())


def _pixels_before(value: ir.Value, channels: int, version: int) -> Fraction | None:
    """How many pixels there are before a Resize for each one after it; None for other values.

    Nothing else may read what it gives, and it must leave channels alone.
    """
    node = value.producer()
    if node is None or not _is_known(node, "Resize", "Upsample") or value.is_graph_output():
        return None
    is_read_once = len({use.node for use in value.uses()}) == 1 and _is_read_beside(value)
    if not is_read_once or not _is_linear(node):
        return None
    given, made = shape_of(node.inputs[0]), shape_of(value)
    if given is None or made is None or given[channels] != made[channels]:
        return None
    scales = _scales(node, len(given), version)
    if scales is not None:
        is_plain = len(scales) == len(given) and scales[channels] == 1 and min(scales) > 0
        larger = prod(map(Fraction, scales), start=Fraction(1))
        return 1 / larger if is_plain else None
    is_told_sizes = version >= TOLD_SIZES_SINCE and len(node.inputs) > SIZES
    return _ratio(given, made) if is_told_sizes and node.inputs[SIZES] is not None else None


def _is_read_beside(value: ir.Value) -> bool:
    """Whether a value is read in the graph that makes it alone: a body may run many times."""
    maker = value.producer()
    return maker is not None and all(use.node.graph is maker.graph for use in value.uses())


def _is_linear(resize: ir.Node) -> bool:
    """Whether each pixel is a sum of others with fixed weights, whatever the number of channels."""
    crops = resize.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    policy = resize.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    return crops != "tf_crop_and_resize" and policy == "stretch"


def _scales(resize: ir.Node, rank: int, version: int) -> Sequence[float] | None:
    """The constant scales of all axes, if these are what it is told."""
    given = resize.attributes.get_floats("scales", None)
    if given is not None:
        return given
    is_old = version < TOLD_SIZES_SINCE or is_op(resize, "Upsample")
    index = FIRST_SCALES if is_old else SCALES
    tensor = constant_of(resize.inputs[index]) if len(resize.inputs) > index else None
    told = [] if tensor is None else [float(scale) for scale in tensor.numpy().reshape(-1)]
    axes = resize.attributes.get_ints("axes", None) or range(rank)
    if not told or len(told) != len(axes):
        return None
    scales = {axis % rank: scale for axis, scale in zip(axes, told, strict=True)}
    return [scales.get(axis, 1.0) for axis in range(rank)]


def _ratio(given: Shape, made: Shape) -> Fraction | None:
    """How much smaller one shape is than another, along the axes after the batch that differ."""
    pairs = [pair for pair in zip(given[1:], made[1:], strict=True) if pair[0] != pair[1]]
    if any(not isinstance(length, int) or length < 1 for pair in pairs for length in pair):
        return None
    return prod((Fraction(int(str(one)), int(str(two))) for one, two in pairs), start=Fraction(1))
