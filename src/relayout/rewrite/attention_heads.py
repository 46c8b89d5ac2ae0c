"""Where the operands of an attention lie before their heads are split off and moved forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import onnx_ir as ir

from relayout.graph.read import NodeView, is_op, perm_of, rank_of, shape_of
from relayout.graph.region import Region
from relayout.layout.blocks import UNIT, Reshaping, Size, Sizes, product, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.strided_view import Link, View, same_elements
from relayout.rewrite.attention_steps import UNSCALED, Scaling, Selection, scaling_of, selection_of
from relayout.rewrite.links import VIEWS, NodeLinks, read_links

LONGEST = 12
"""Heads are split off in fewer steps than this."""

HEADS_SECOND = Permutation.of(0, 2, 1, 3)
"""From batch, heads, length, depth to batch, length, heads, depth; its own inverse."""

DEPTH_THIRD = Permutation.of(0, 3, 1, 2)
"""From batch, heads, depth, length to batch, length, heads, depth."""


LENGTH_FIRST = Permutation.of(1, 0, 2, 3)
"""From batch, length, heads, depth to length, batch, heads, depth; its own inverse."""


@dataclass(frozen=True, slots=True)
class Heads:
    """An operand of an attention, as a tensor [batch, length, parts · heads · depth].

    Or as one [length, batch, parts · heads · depth], the order of recurrent networks.
    """

    source: ir.Value
    batch: Size
    heads: Size
    length: Size
    depth: Size
    scaling: Scaling
    nodes: tuple[ir.Node, ...]
    """What lies between the source and the product that reads the operand."""
    part: int = 0
    parts: int = 1
    target: tuple[int, ...] | None = None
    """The Reshape that gives the source these three axes; None where it has them."""
    is_length_first: bool = False
    moved: Permutation | None = None
    """What brings the source to batch, length, heads, depth, before it is reshaped."""

    @property
    def joined(self) -> Sizes:
        """The lengths of the operand as it lies."""
        outer = (self.batch, self.length)
        return (*(outer[::-1] if self.is_length_first else outer), self.heads * self.depth)


@dataclass(frozen=True, slots=True)
class Ports:
    """The three operands of an attention."""

    query: Heads
    key: Heads
    value: Heads

    def __iter__(self) -> Iterator[Heads]:
        return iter((self.query, self.key, self.value))


@dataclass(frozen=True, slots=True)
class _Path:
    """Views and scalings that lead from a source to an operand."""

    source: ir.Value
    nodes: tuple[ir.Node, ...] = ()
    scaling: Scaling = UNSCALED

    def after(self, node: ir.Node, source: ir.Value, scaling: Scaling) -> _Path:
        return _Path(source, (node, *self.nodes), scaling)


@dataclass(frozen=True, slots=True)
class _Read:
    """A path as links, with the shapes along it."""

    links: tuple[Link, ...]
    shapes: tuple[Sizes, ...]


def heads_of(value: ir.Value | None, order: Permutation, region: Region) -> Heads | None:
    """The operand before its heads were moved, as near as it has three axes, else as near as any.

    `order` takes the axes of the operand to batch, length, heads, depth.
    """
    nearest: Heads | None = None
    for path in _paths(value):
        found = _lying(path, order, region)
        if found is not None and found.target is None:
            return found
        nearest = nearest or found
    return nearest


def heads_apart(value: ir.Value | None, order: Permutation) -> Heads | None:
    """The operand with its heads apart, before it is scaled and its four axes are reordered.

    `order` takes the axes of the operand to batch, length, heads, depth.
    """
    if value is None or rank_of(value) != HEADS_SECOND.rank:
        return None
    path, moved = _Path(value), order
    while (longer := _longer(path)) is not None:
        node = longer.nodes[0]
        perm = perm_of(node) if is_op(node, "Transpose") else None
        if perm is None and is_op(node, *VIEWS):
            break
        path, moved = longer, moved if perm is None else perm.then(moved)
    given = sizes_named(path.source)
    if given is None or len(given) != moved.rank:
        return None
    batch, length, heads, depth = moved.reorder(given)
    found = Heads(path.source, batch, heads, length, depth, path.scaling, path.nodes, moved=moved)
    return _reached(found, (batch, length, heads, depth))


def sizes_named(value: ir.Value) -> Sizes | None:
    """The lengths of a value; an unknown one is a symbol of this value's own."""
    shape = shape_of(value)
    if shape is None or 0 in shape:
        return None
    return sizes_of(shape, f"axis of {value.name}")


def _paths(value: ir.Value | None) -> Iterator[_Path]:
    """The path of no steps, then longer and longer ones."""
    if value is None:
        return
    path = _Path(value)
    yield path
    while len(path.nodes) < LONGEST and (longer := _longer(path)) is not None:
        path = longer
        yield path


def _longer(path: _Path) -> _Path | None:
    producer = path.source.producer()
    if producer is None:
        return None
    if is_op(producer, *VIEWS):
        source = producer.inputs[0]
        return None if source is None else path.after(producer, source, path.scaling)
    scaled = scaling_of(producer)
    if scaled is None:
        return None
    source, scaling = scaled
    return path.after(producer, source, path.scaling.times(scaling))


def _lying(path: _Path, order: Permutation, region: Region) -> Heads | None:
    given = sizes_named(path.source)
    read = None if given is None else _links(path, given, region)
    if given is None or read is None:
        return None
    for split in _splits(read):
        batch, length, heads, depth = order.reorder(split)
        found = Heads(path.source, batch, heads, length, depth, path.scaling, path.nodes)
        for is_length_first in (False, True):
            links = [*read.links, split, order, *([LENGTH_FIRST] if is_length_first else [])]
            view = View.along(given, links)
            if view is None:
                continue
            lying = replace(found, is_length_first=is_length_first)
            reached = _packed(lying, view, region) if view.moves else _reached(lying, given)
            if reached is not None:
                return reached
    return None


def _links(path: _Path, given: Sizes, region: Region) -> _Read | None:
    links: list[Link] = []
    shapes = [given]
    for node in path.nodes:
        if not is_op(node, *VIEWS):
            continue
        view = region.view(node)
        reading = read_links(view, shapes[-1]) or _conserving(view, shapes[-1])
        if reading is None:
            return None
        links += reading.links
        shapes.append(reading.shape)
    return _Read(tuple(links), tuple(shapes))


def _conserving(view: NodeView, given: Sizes) -> NodeLinks | None:
    """A Reshape with one unknown length, which follows from the number of elements."""
    result = sizes_named(view.node.outputs[0]) if view.op_type == "Reshape" else None
    if result is None:
        return None
    known = {symbol for size in given for symbol in size.symbols}
    open_axes = [axis for axis, size in enumerate(result) if not known.issuperset(size.symbols)]
    if len(open_axes) != 1:
        return None
    axis = open_axes[0]
    rest = product(given).over(product([*result[:axis], *result[axis + 1 :]]))
    if rest is None:
        return None
    shape = (*result[:axis], rest, *result[axis + 1 :])
    return NodeLinks((shape,), shape) if same_elements(shape, given) else None


def _splits(read: _Read) -> Iterator[Sizes]:
    """The operand with four axes; where batch and heads are one, by each batch on the path."""
    last = read.shapes[-1]
    if len(last) == 4:
        yield last
    if len(last) != 3:
        return
    outer = [shape[axis] for axis in (0, 1) for shape in read.shapes if len(shape) > axis]
    for batch in dict.fromkeys([*outer, UNIT]):
        heads = last[0].over(batch)
        if heads is not None and heads != UNIT:
            yield (batch, heads, last[1], last[2])


def _reached(found: Heads, given: Sizes) -> Heads | None:
    """The operand with the Reshape it takes, if a constant can state it."""
    *outer, width = found.joined
    wanted = (*outer, width * Size(found.parts))
    if given == wanted:
        return found
    as_given = Permutation.identity(len(given)), Permutation.identity(3)
    target = Reshaping(given, wanted).target(*as_given)
    return None if target is None else replace(found, target=tuple(target))


def _packed(found: Heads, view: View, region: Region) -> Heads | None:
    """The operand as one of several that lie side by side, each with all its heads."""
    selection = selection_of(found.source, region)
    order = None if selection is None else view.order_of_source()
    if selection is None or order is None:
        return None
    wanted = _packed_order(found, view.source, order, selection)
    if wanted is None:
        return None
    for path in _paths(selection.whole):
        given = sizes_named(path.source)
        read = None if given is None else _links(path, given, region)
        if given is None or read is None or len(read.shapes[-1]) != wanted.rank:
            continue
        whole = View.along(given, [*read.links, wanted])
        if whole is None or whole.moves:
            continue
        return _reached(
            replace(
                found,
                source=path.source,
                scaling=found.scaling.times(path.scaling),
                nodes=(*path.nodes, selection.node, *found.nodes),
                part=selection.part,
                parts=selection.parts,
            ),
            given,
        )
    return None


def _packed_order(
    found: Heads, sizes: Sizes, order: Permutation, selection: Selection
) -> Permutation | None:
    """The order of the whole in which its parts follow batch and length."""
    axis = selection.axis
    kept = [place for place in order if selection.dropped or place != axis]
    border = _border(found, [sizes[place] for place in kept])
    if border is None:
        return None
    places = [place + 1 if selection.dropped and place >= axis else place for place in kept]
    wanted = Permutation((*places[:border], axis, *places[border:]))
    free = selection.dropped or sizes[axis] == UNIT
    return wanted if free or wanted == order else None


def _border(found: Heads, sizes: list[Size]) -> int | None:
    """How many axes batch and length take up."""
    wanted = found.batch * found.length
    borders = (place for place in range(len(sizes) + 1) if product(sizes[:place]) == wanted)
    return next(borders, None)
