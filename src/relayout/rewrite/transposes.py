"""Transposes that compose, cancel, repeat each other, or act on constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, perm_of
from relayout.layout.permutation import Permutation
from relayout.ops.measure import is_large
from relayout.rewrite.worklist import consumers


def transposed_source(value: ir.Value | None) -> tuple[ir.Value, Permutation] | None:
    """What a value is a Transpose of, and by which order."""
    producer = None if value is None else value.producer()
    if producer is None or not is_op(producer, "Transpose") or producer.inputs[0] is None:
        return None
    order = perm_of(producer)
    return None if order is None else (producer.inputs[0], order)


@dataclass(frozen=True, slots=True)
class DropIdentity:
    """A Transpose that keeps every axis where it is does nothing.

    Given:  y = Transpose<perm=[0,1,2]>(x)
    Result: y is x
    """

    name: str = "drop identity Transpose"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        if order is None or source is None or not order.is_identity:
            return None
        return _replace(node, source, editor)


@dataclass(frozen=True, slots=True)
class ComposeChain:
    """A Transpose of a Transpose is one Transpose, even if the first has other consumers.

    Given:  a = Transpose<perm=p>(x); y = Transpose<perm=q>(a)
    Result: y = Transpose<perm=p[q]>(x), or y is x where the two are inverse
    """

    name: str = "compose Transposes"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        after, inner = perm_of(node), transposed_source(node.inputs[0])
        if after is None or inner is None:
            return None
        source, before = inner
        if before.rank != after.rank:
            return None
        first = node.inputs[0]
        editor.read(node, 0, source)
        editor.set_attribute(node, "perm", before.then(after).axes)
        if first is not None and (producer := first.producer()) is not None:
            editor.discard(producer)
        return consumers(node.outputs[0])


@dataclass(slots=True)
class ShareEqual:
    """One Transpose per value and order, however many read it.

    Given:  a = Transpose<perm=p>(x); b = Transpose<perm=p>(x)
    Result: a = Transpose<perm=p>(x); b is a

    Nodes are visited in topological order, so the one that was seen first stands first.
    """

    name: str = "share equal Transposes"
    op_types: tuple[str, ...] = ("Transpose",)
    _first: dict[tuple[ir.Value, Permutation, ir.Graph], ir.Node] = field(default_factory=dict)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        if order is None or source is None or node.graph is None:
            return None
        key = (source, order, node.graph)
        first = self._first.setdefault(key, node)
        if first is node:
            return None
        if first.graph is None or first.inputs[0] is not source or perm_of(first) != order:
            self._first[key] = node
            return None
        return _replace(node, first.outputs[0], editor)


@dataclass(frozen=True, slots=True)
class FoldConstant:
    """A Transpose of a constant is another constant.

    Given:  y = Transpose<perm=p>(w), w a constant
    Result: y is a constant

    A large constant that others read as it is may be left as the only one: until layouts are
    chosen, since an operator may read it so, or for good.
    """

    leaves_tied: bool = False
    name: str = "fold Transpose of a constant"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        tensor = constant_of(source)
        if order is None or source is None or tensor is None or len(tensor.shape) != order.rank:
            return None
        if self.leaves_tied and is_large(tensor) and _has_other_readers(source, order):
            return None
        return _replace(node, editor.transposed(source, order, before=node), editor)


def _has_other_readers(value: ir.Value, order: Permutation) -> bool:
    """Whether a value is read by anything but Transposes to one order."""
    readers = consumers(value)
    return value.is_graph_output() or not all(
        is_op(reader, "Transpose") and perm_of(reader) == order for reader in readers
    )


def _replace(node: ir.Node, by: ir.Value, editor: Editor) -> list[ir.Node]:
    touched = consumers(node.outputs[0])
    editor.substitute(node.outputs[0], by, origin=node)
    editor.discard(node)
    return touched
