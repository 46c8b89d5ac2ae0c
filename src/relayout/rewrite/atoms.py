"""Merges that sink and splits that rise, so that operators run on the factors of merged axes.

An order cannot cross a Reshape that merges axes it stores apart. Where the operators after the
Reshape work with more axes too, the Reshape can stand after them, and the order crosses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.editing.permuted import tensor_of
from relayout.graph.read import constant_of, is_op, shape_of
from relayout.layout.blocks import Reshaping, Sizes, product, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.splitting import AxisMap, Groups, merged_from, split_sizes
from relayout.layout.transport import Refusal
from relayout.ops.registry import axis_map, names_of
from relayout.rewrite.links import RESHAPES, dims_of, read_links
from relayout.rewrite.worklist import consumers

MOST_AXES = 10
"""Tensors of more axes than this are not considered."""


def _with_axes() -> tuple[str, ...]:
    """The operators whose axes can be split."""
    return names_of(lambda facts: facts.axes is not None)


@dataclass(frozen=True, slots=True)
class SinkMerge:
    """A Reshape that merges axes goes after its consumer, which then works on the factors.

    Given:  a = Reshape(x, [6,5]), x of shape [2,3,5]; y = Relu(a)
    Result: b = Relu(x); y = Reshape(b, [6,5])
    """

    most_axes: int = MOST_AXES
    """The axes that a tensor may have then."""
    name: str = "let a merge of axes sink"

    @property
    def op_types(self) -> tuple[str, ...]:
        return _with_axes()

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        found = _map_of(node, editor)
        if found is None:
            return None
        for index, labels in enumerate(found.operands):
            value = node.inputs[index]
            if value is None or labels is None or (merge := _reshape_of(value, editor)) is None:
                continue
            groups = found.splittable(labels, merged_from(merge.source_sizes, merge.sizes))
            touched = _split(node, found, groups, editor, self.most_axes) if groups else None
            if touched is not None:
                return touched
        return None


@dataclass(frozen=True, slots=True)
class RaiseSplit:
    """A Reshape that splits axes goes before the operator whose result it reads.

    Given:  a = Relu(x), x of shape [6,5]; y = Reshape(a, [2,3,5])
    Result: b = Reshape(x, [2,3,5]); y = Relu(b)
    """

    most_axes: int = MOST_AXES
    """The axes that a tensor may have then."""
    name: str = "let a split of axes rise"

    @property
    def op_types(self) -> tuple[str, ...]:
        return _with_axes()

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        found = _map_of(node, editor)
        if found is None:
            return None
        for value, labels in zip(node.outputs, found.results, strict=True):
            for split in _reshapes_reading(value, editor):
                groups = found.splittable(labels, merged_from(split.sizes, split.source_sizes))
                touched = _split(node, found, groups, editor, self.most_axes) if groups else None
                if touched is not None:
                    return touched
        return None


@dataclass(frozen=True, slots=True)
class JoinReshapes:
    """A Reshape of a Reshape is one Reshape.

    Given:  a = Reshape(x, [6,5]); y = Reshape(a, [2,3,5])
    Result: y = Reshape(x, [2,3,5])
    """

    name: str = "join Reshapes"
    op_types: tuple[str, ...] = RESHAPES
    shortens: bool = False
    """Whether to do it only where the first of them goes."""

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        if self.shortens and _is_shared(node.inputs[0]):
            return None
        last = _read(node, editor)
        if last is None or (first := _reshape_of(last.source, editor)) is None:
            return None
        result = node.outputs[0]
        value = _reshaped(first.source, first.source_sizes, last.sizes, node, editor)
        if value is None or (value is first.source and result.is_graph_output()):
            return None
        touched = consumers(result)
        editor.substitute(result, value, origin=node)
        editor.discard(node)
        return [*touched, *_producers([value])]


def _is_shared(value: ir.Value | None) -> bool:
    return value is not None and (value.is_graph_output() or len(value.uses()) > 1)


@dataclass(frozen=True, slots=True)
class _Reshape:
    """A node that only changes the shape, with the lengths before and after."""

    source: ir.Value
    source_sizes: Sizes
    sizes: Sizes


def _read(node: ir.Node | None, editor: Editor) -> _Reshape | None:
    """A Reshape, with lengths known from the Reshape it reads, if it reads one."""
    source = node.inputs[0] if node is not None and is_op(node, *RESHAPES) else None
    return _reading(node, _sizes(source, editor), editor)


def _reshape_of(value: ir.Value | None, editor: Editor) -> _Reshape | None:
    """The Reshape that makes a value, with the lengths that its own operand is known to have."""
    node = None if value is None else value.producer()
    source = node.inputs[0] if node is not None and is_op(node, *RESHAPES) else None
    return _reading(node, _declared(source), editor)


def _reading(node: ir.Node | None, given: Sizes | None, editor: Editor) -> _Reshape | None:
    if node is None or given is None or node.graph is not editor.region.graph:
        return None
    source, reading = node.inputs[0], read_links(editor.region.view(node), given)
    if source is None or reading is None or constant_of(source) is not None:
        return None
    return _Reshape(source, given, reading.shape)


def _reshapes_reading(value: ir.Value, editor: Editor) -> Iterator[_Reshape]:
    for use in value.uses():
        found = _read(use.node, editor) if use.idx == 0 else None
        if found is not None:
            yield found


def _map_of(node: ir.Node, editor: Editor) -> AxisMap | None:
    found = axis_map(editor.region.view(node))
    if isinstance(found, Refusal) or constant_of(node.outputs[0]) is not None:
        return None
    return found


def _sizes(value: ir.Value | None, editor: Editor) -> Sizes | None:
    """The lengths of a value; after a Reshape, by those of what it reads."""
    made = _reshape_of(value, editor)
    return _declared(value) if made is None else made.sizes


def _declared(value: ir.Value | None) -> Sizes | None:
    shape = shape_of(value)
    return None if shape is None or 0 in shape else sizes_of(shape, "source")


def _split(
    node: ir.Node, found: AxisMap, groups: Groups, editor: Editor, most_axes: int
) -> Iterable[ir.Node] | None:
    """Let a node work on the factors of its axes; the nodes to look at again."""
    results = _split_results(node, found, groups, editor, most_axes)
    operands = _split_operands(node, found, groups, editor)
    if results is None or operands is None:
        return None
    shapes = [ir.Shape(dims_of(split)) for _, split in results]
    new = editor.adapted(node, operands, shapes, found.changes(groups))
    touched: list[ir.Node] = [*_producers(operands), *_producers(new[:1])]
    for old, value, (given, split) in zip(node.outputs, new, results, strict=True):
        merged = _reshaped(value, split, given, node, editor)
        if merged is None:
            raise ValueError(f"the axes of {old.name!r} cannot be merged again")
        touched += consumers(old)
        editor.substitute(old, merged, origin=node)
        touched += _producers([merged])
    editor.discard(node)
    return touched


def _split_results(
    node: ir.Node, found: AxisMap, groups: Groups, editor: Editor, most_axes: int
) -> list[tuple[Sizes, Sizes]] | None:
    """The lengths of each result before and after; None where they cannot be written back."""
    pairs = []
    for value, labels in zip(node.outputs, found.results, strict=True):
        given = _sizes(value, editor)
        if given is None or not value.name:
            return None
        split = split_sizes(given, labels, groups)
        whole = _in_full(given, labels, groups)
        if len(split) > most_axes or _target(split, whole) is None:
            return None
        pairs.append((whole, split))
    return pairs


def _in_full(given: Sizes, labels: Sequence[int], groups: Groups) -> Sizes:
    """The lengths as products of their factors, which may be more exact than what was declared."""
    return tuple(
        product(groups[label]) if label in groups and size.symbols else size
        for size, label in zip(given, labels, strict=True)
    )


def _split_operands(
    node: ir.Node, found: AxisMap, groups: Groups, editor: Editor
) -> list[ir.Value | None] | None:
    operands: list[ir.Value | None] = []
    for value, labels in zip(node.inputs, found.operands, strict=True):
        if value is None or labels is None or groups.keys().isdisjoint(labels):
            operands.append(value)
            continue
        given = _sizes(value, editor)
        if given is None:
            return None
        whole = _in_full(given, labels, groups)
        split = _reshaped(value, whole, split_sizes(whole, labels, groups), node, editor)
        if split is None:
            return None
        operands.append(split)
    return operands


def _target(given: Sizes, asked: Sizes) -> tuple[int, ...] | None:
    as_given = Permutation.identity(len(given)), Permutation.identity(len(asked))
    return Reshaping(given, asked).target(*as_given)


def _reshaped(
    value: ir.Value, given: Sizes, asked: Sizes, before: ir.Node, editor: Editor
) -> ir.Value | None:
    """`value`, of the given lengths, in another shape; None where no constant can state it."""
    source = _reshape_of(value, editor)
    if source is not None and _target(source.source_sizes, asked) is not None:
        value, given = source.source, source.source_sizes
    if given == asked:
        return value
    target = _target(given, asked)
    if target is None:
        return None
    tensor = constant_of(value)
    hint = f"{value.name}_reshaped"
    if tensor is not None:
        array = tensor.numpy().reshape([size.number for size in asked])
        data = tensor_of(array, tensor.dtype)
        return editor.constant(data, hint=hint, before=before)
    shape = editor.constant(np.asarray(target, np.int64), hint=f"{hint}_shape", before=before)
    return editor.add(
        "Reshape",
        [value, shape],
        before=before,
        hint=hint,
        like=value,
        shape=ir.Shape(dims_of(asked)),
        origin=[before],
    )


def _producers(values: Iterable[ir.Value | None]) -> list[ir.Node]:
    made = (None if value is None else value.producer() for value in values)
    return [node for node in made if node is not None]
