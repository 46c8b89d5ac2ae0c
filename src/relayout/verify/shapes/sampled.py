"""Shapes of pictures that are scaled, and of what is read from regions and grids."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from relayout.verify.proof.lengths import Length, times
from relayout.verify.shapes.symbolic import OpenShape, Shapes, attribute, integers

SIZES = 3


def resize(found: Shapes, node: onnx.NodeProto) -> None:
    """By sizes or by factors; a policy that keeps ratios is not read."""
    dims, sizes = found.of_input(node, 0), found.numbers_of(node, SIZES)
    factors = found.factors.get(node.input[min(2, len(node.input) - 1)])
    if dims is None or any(one.name == "keep_aspect_ratio_policy" for one in node.attribute):
        return
    axes = integers(node, "axes") or list(range(len(dims)))
    result: OpenShape = list(dims)
    for i, axis in enumerate(axes):
        result[axis] = sizes[i] if sizes else _scaled(dims[axis], factors[i] if factors else None)
    found.dims[node.output[0]] = result


def _scaled(dim: Length | None, factor: float | None) -> Length | None:
    if dim is None or factor is None:
        return None
    if isinstance(dim, int):
        return int(dim * factor)
    return times(dim, int(factor)) if factor == int(factor) else None


def pooled_regions(found: Shapes, node: onnx.NodeProto) -> None:
    """A picture of fixed size for each region."""
    dims, regions = found.of_input(node, 0), found.of_input(node, 1)
    if dims is None or regions is None:
        return
    size = integers(node, "pooled_shape") or [
        attribute(node, "output_height", 1),
        attribute(node, "output_width", 1),
    ]
    found.same(found.of_input(node, 2), regions[:1])
    found.dims[node.output[0]] = [regions[0], dims[1], *size]


def grid_sample(found: Shapes, node: onnx.NodeProto) -> None:
    dims, grid = found.of_input(node, 0), found.of_input(node, 1)
    if dims is not None and grid is not None:
        found.equal(dims[0], grid[0])
        found.dims[node.output[0]] = [*dims[:2], *grid[1:-1]]


def affine_grid(found: Shapes, node: onnx.NodeProto) -> None:
    """A place for each element of a picture."""
    size = found.numbers_of(node, 1)
    if size:
        found.same(found.of_input(node, 0), size[:1])
        found.dims[node.output[0]] = [size[0], *size[2:], len(size) - 2]


RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(("MaxRoiPool", "RoiAlign"), pooled_regions),
    **dict.fromkeys(("Resize", "Upsample"), resize),
    "AffineGrid": affine_grid,
    "GridSample": grid_sample,
}
