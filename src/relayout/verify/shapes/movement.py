"""Shapes of what moves, repeats or leaves out elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import onnx

from relayout.verify.proof.lengths import Length, minus, plus, times
from relayout.verify.shapes.symbolic import (
    OpenShape,
    Shapes,
    attribute,
    axes_of,
    elements,
    integers,
)

END = 1 << 31
"""A bound from here on means the end of an axis."""


def transpose(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is not None:
        perm = integers(node, "perm") or list(reversed(range(len(dims))))
        found.dims[node.output[0]] = [dims[axis] for axis in perm]


def reshape(found: Shapes, node: onnx.NodeProto) -> None:
    dims, target = found.of_input(node, 0), found.numbers_of(node, 1)
    if target is None:
        return
    if dims is not None:
        target = _viewed(found, dims, target, copies=not attribute(node, "allowzero", 0))
    found.dims[node.output[0]] = [None if size == -1 else size for size in target]


def _viewed(found: Shapes, dims: OpenShape, target: OpenShape, *, copies: bool) -> OpenShape:
    """A target with what 0 and -1 stand for; both shapes have equally many elements."""
    target = [
        dims[i] if size == 0 and copies and i < len(dims) else size for i, size in enumerate(target)
    ]
    if -1 in target:
        given, stated = list(dims), []
        for size in target:
            if size in given and size is not None:
                given.remove(size)
            elif size != -1:
                stated.append(size)
        rest = found.part(elements(given), elements(stated))
        return [rest if size == -1 else size for size in target]
    found.as_many(dims, target)
    return target


def unsqueeze(found: Shapes, node: onnx.NodeProto) -> None:
    dims, axes = found.of_input(node, 0), axes_of(found, node)
    if node.input[0] in found.numbers:
        found.numbers[node.output[0]] = found.numbers[node.input[0]]
    if dims is None or axes is None:
        return
    rank = len(dims) + len(axes)
    places = {axis % rank for axis in axes}
    rest = iter(dims)
    found.dims[node.output[0]] = [1 if i in places else next(rest) for i in range(rank)]


def squeeze(found: Shapes, node: onnx.NodeProto) -> None:
    """Without axes, those of length 1 are left out; an open length is taken for a longer one."""
    dims, axes = found.of_input(node, 0), axes_of(found, node)
    if node.input[0] in found.numbers:
        found.numbers[node.output[0]] = found.numbers[node.input[0]]
    if dims is None or (axes is None and (len(node.input) > 1 or None in dims)):
        return
    if axes is None:
        axes = [i for i, dim in enumerate(dims) if dim == 1]
    places = {axis % len(dims) for axis in axes}
    for axis in places:
        found.equal(dims[axis], 1)
    found.dims[node.output[0]] = [dim for i, dim in enumerate(dims) if i not in places]


def flatten(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is not None:
        axis = attribute(node, "axis", 1)
        axis += len(dims) if axis < 0 else 0
        found.dims[node.output[0]] = [elements(dims[:axis]), elements(dims[axis:])]


def concat(found: Shapes, node: onnx.NodeProto) -> None:
    parts = [found.numbers.get(name) for name in node.input]
    if all(part is not None for part in parts):
        found.numbers[node.output[0]] = [one for part in parts for one in part or ()]
    shapes = [found.dims.get(name) for name in node.input]
    known = [dims for dims in shapes if dims is not None]
    if len(known) < len(shapes) or not known:
        return
    axis = attribute(node, "axis", 0) % len(known[0])
    result = list(known[0])
    for dims in known[1:]:
        for i, dim in enumerate(dims):
            size = result[i]
            if i == axis:
                result[i] = None if size is None or dim is None else plus(size, dim)
            else:
                found.equal(size, dim)
    found.dims[node.output[0]] = result


def gather(found: Shapes, node: onnx.NodeProto) -> None:
    data, index = found.of_input(node, 0), found.of_input(node, 1)
    numbers, places = found.numbers_of(node, 0), found.fixed(node, 1)
    if numbers is not None and places is not None:
        found.numbers[node.output[0]] = [numbers[place] for place in places]
    if data is None or index is None:
        return
    axis = attribute(node, "axis", 0) % len(data)
    found.dims[node.output[0]] = [*data[:axis], *index, *data[axis + 1 :]]


def gather_tuples(found: Shapes, node: onnx.NodeProto) -> None:
    """Tuples of places, and what lies there."""
    data, index = found.of_input(node, 0), found.of_input(node, 1)
    if data is None or not index or not isinstance(index[-1], int):
        return
    shared = attribute(node, "batch_dims", 0)
    found.same(data[:shared], index[:shared])
    found.dims[node.output[0]] = [*index[:-1], *data[shared + index[-1] :]]


def of_indices(found: Shapes, node: onnx.NodeProto) -> None:
    index = found.of_input(node, 1)
    if index is not None:
        found.dims[node.output[0]] = index


def cut(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    starts, ends = found.numbers_of(node, 1), found.numbers_of(node, 2)
    if len(node.input) == 1:
        starts, ends = list(integers(node, "starts") or ()), list(integers(node, "ends") or ())
    if dims is None or starts is None or ends is None:
        return
    axes: list[int] | range | None = range(len(starts))
    if integers(node, "axes") is not None or (len(node.input) > 3 and node.input[3]):
        axes = integers(node, "axes") or found.fixed(node, 3)
    steps = found.fixed(node, 4) if len(node.input) > 4 else None
    if axes is None or set(steps or [1]) != {1}:
        return
    result = list(dims)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        result[axis % len(dims)] = _between(dims[axis % len(dims)], start, end)
    found.dims[node.output[0]] = result
    numbers = found.numbers_of(node, 0)
    if numbers is not None and isinstance(starts[0], int) and isinstance(ends[0], int):
        found.numbers[node.output[0]] = numbers[starts[0] : ends[0]]


def _between(dim: Length | None, start: Length | None, end: Length | None) -> Length | None:
    """The length of a part; bounds that are open are taken to lie in the whole."""
    if start is None or end is None:
        return None
    if isinstance(end, int) and (end >= END or end < 0):
        end = None if dim is None else plus(dim, min(end, 0) if end < END else 0)
    if isinstance(start, int) and start < 0:
        start = None if dim is None else plus(dim, start)
    if start is None or end is None:
        return None
    length = minus(end, start)
    if isinstance(length, int) and isinstance(dim, int):
        return max(0, min(length, dim))
    return length


def expand(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.broadcast([found.of_input(node, 0), found.numbers_of(node, 1)])
    if dims is not None:
        found.dims[node.output[0]] = dims


def tile(found: Shapes, node: onnx.NodeProto) -> None:
    dims, counts = found.of_input(node, 0), found.numbers_of(node, 1)
    if dims is not None and counts is not None:
        found.dims[node.output[0]] = [
            None if dim is None or count is None else times(dim, count)
            for dim, count in zip(dims, counts, strict=True)
        ]


def pad(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    sizes = integers(node, "pads") or found.numbers_of(node, 1)
    if dims is None or sizes is None or (len(node.input) > 3 and node.input[3]):
        return
    both = zip(dims, sizes[: len(dims)], sizes[len(dims) :], strict=True)
    found.dims[node.output[0]] = [_sum(parts) for parts in both]


def _sum(parts: Iterable[Length | None]) -> Length | None:
    known = [part for part in parts if part is not None]
    return reduce(plus, known) if len(known) == 3 else None


def split(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is None:
        return
    axis = attribute(node, "axis", 0) % len(dims)
    sizes = integers(node, "split") or found.fixed(node, 1)
    whole = dims[axis]
    if sizes:
        found.equal(whole, sum(sizes))
    even = None if sizes or len(node.input) > 1 else found.part(whole, len(node.output))
    for i, name in enumerate(node.output):
        found.dims[name] = [*dims[:axis], sizes[i] if sizes else even, *dims[axis + 1 :]]


def depth_to_space(found: Shapes, node: onnx.NodeProto) -> None:
    dims, block = found.of_input(node, 0), attribute(node, "blocksize", 1)
    if dims is not None and len(dims) > 2:
        spatial = [None if dim is None else times(dim, block) for dim in dims[2:]]
        channels = found.part(dims[1], block ** len(spatial))
        found.dims[node.output[0]] = [dims[0], channels, *spatial]


def space_to_depth(found: Shapes, node: onnx.NodeProto) -> None:
    dims, block = found.of_input(node, 0), attribute(node, "blocksize", 1)
    if dims is not None and len(dims) > 2:
        spatial = [found.part(dim, block) for dim in dims[2:]]
        channels = None if dims[1] is None else times(dims[1], block ** len(spatial))
        found.dims[node.output[0]] = [dims[0], channels, *spatial]


def tensor_scatter(found: Shapes, node: onnx.NodeProto) -> None:
    """Updates are as long as what they are written into but along the axis they are written at."""
    dims, update = found.of_input(node, 0), found.of_input(node, 1)
    if dims is None:
        return
    found.dims[node.output[0]] = dims
    if update is None or len(update) != len(dims):
        return
    axis = attribute(node, "axis", -2) % len(dims)
    found.same(update, [update[i] if i == axis else dim for i, dim in enumerate(dims)])
    found.same(found.of_input(node, 2), dims[:1])


RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    "Concat": concat,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": of_indices,
    "GatherND": gather_tuples,
    "Pad": pad,
    "Reshape": reshape,
    "Slice": cut,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "TensorScatter": tensor_scatter,
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
