"""Keys and values that several heads share are read once, not once for each head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import Shape, is_op, perm_of, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import AttributeValue, Changes
from relayout.rewrite.attention_masks import FORMS, OPERATORS
from relayout.rewrite.worklist import consumers
from relayout.targets.ort import CONTRIB_DOMAIN

APART = 4
"""The axes of an operand whose heads have an axis of their own."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """Keys or values before each head of a group gets its own."""

    value: ir.Value
    """With an axis of length 1 where the heads of a group follow, once it lies in `order`."""
    order: Permutation
    groups: int
    heads: int
    size: int
    shape: Shape
    """Without that axis."""

    @property
    def is_apart(self) -> bool:
        return len(self.shape) == APART

    @property
    def target(self) -> list[int]:
        """The shape as a Reshape states it; heads lie in front of what may have any length."""
        return [0, self.groups, -1, self.size] if self.is_apart else [0, 0, self.groups * self.size]


@dataclass(frozen=True, slots=True)
class ShareKeys:
    """An attention whose keys and values are repeated for the heads of a group reads them once.

    Given:  k = Reshape(Tile(Reshape(x, [B,L,G,1,D]), [1,1,1,n,1]), [B,L,G*n*D]), v likewise;
            y = com.microsoft.MultiHeadAttention<num_heads=G*n>(q, k, v)
    Result: y = Attention<q_num_heads=G*n, kv_num_heads=G>(q, Reshape(x, [B,L,G*D]), ..)

    MultiHeadAttention has no groups, the standard operator has.
    """

    name: str = "read keys of groups once"
    op_types: tuple[str, ...] = OPERATORS

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        key, value = _shared(node, 1), _shared(node, 2)
        if key is None or value is None or key.groups != value.groups or not _is_plain(node):
            return None
        result = node.outputs[0]
        shared = [_reshaped(each, node, editor) for each in (key, value)]
        changes = Changes(_attributes(node, key), op_type="Attention", domain="")
        operands = [node.inputs[0], *shared, _mask(node)]
        (made,) = editor.adapted(node, operands, [result.shape], changes)
        touched = consumers(result)
        editor.substitute(result, made, origin=node)
        editor.discard(node)
        return touched


def _mask(node: ir.Node) -> ir.Value | None:
    index = FORMS[node.domain, node.op_type].mask
    return node.inputs[index] if index < len(node.inputs) else None


def _is_plain(node: ir.Node) -> bool:
    """Whether it has the operands that both operators have, one result, and a square if causal.

    Of a rectangle the operators do not hide the same.
    """
    wanted = {*node.inputs[:3], _mask(node)}
    if not wanted.issuperset(node.inputs) or any(_is_read(value) for value in node.outputs[1:]):
        return False
    if not node.attributes.get_int("unidirectional", 0):
        return True
    query, key = (shape_of(value) for value in node.inputs[:2])
    return query is not None and key is not None and query[1] == key[1] is not None


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _attributes(node: ir.Node, shared: _Shared) -> Mapping[str, AttributeValue]:
    groups = {"kv_num_heads": None if shared.is_apart else shared.groups}
    if node.domain != CONTRIB_DOMAIN:
        return groups
    return {
        **dict.fromkeys(("num_heads", "unidirectional", "mask_filter_value")),
        **groups,
        "q_num_heads": shared.heads,
        "is_causal": node.attributes.get_int("unidirectional", 0),
        "scale": node.attributes.get_float("scale", 0.0) or None,
    }


def _shared(node: ir.Node, index: int) -> _Shared | None:
    """What the heads of a group share, if an operand is that repeated for each of them."""
    operand = node.inputs[index]
    joined = None if operand is None else operand.producer()
    if joined is None or not is_op(joined, "Reshape") or joined.inputs[0] is None:
        return None
    repeated, order = _moved(joined.inputs[0])
    if repeated is None or order is None or not is_op(repeated, "Tile", "Expand"):
        return None
    shared = _without_repeats(repeated, order, shape_of(operand))
    return shared if shared is None or shared.is_apart or _heads(node) == shared.heads else None


def _moved(value: ir.Value) -> tuple[ir.Node | None, Permutation | None]:
    """The node that makes a value, behind a Transpose if there is one, and its order."""
    node = value.producer()
    if node is None or not is_op(node, "Transpose") or node.inputs[0] is None:
        return node, Permutation.identity(len(shape_of(value) or ()))
    return node.inputs[0].producer(), perm_of(node)


def _heads(node: ir.Node) -> int | None:
    """How many heads the keys have where they are side by side."""
    name = "num_heads" if node.domain == CONTRIB_DOMAIN else "kv_num_heads"
    return node.attributes.get_int(name, None)


def _without_repeats(repeated: ir.Node, order: Permutation, whole: Shape | None) -> _Shared | None:
    """What is there before an axis of length 1 is repeated and joined with that in front of it."""
    value = repeated.inputs[0]
    given, made = shape_of(value), shape_of(repeated.outputs[0])
    if value is None or given is None or made is None or whole is None:
        return None
    if not len(given) == len(made) == len(order) == 5 or None in (*made, *whole):
        return None
    before, after = order.reorder(given), order.reorder(made)
    axis = 2 if len(whole) == APART else 3
    if before[axis] != 1:
        return None
    batch, *_, size = after
    groups, times, length = after[axis - 1], after[axis], after[3 if axis == 2 else 1]
    if not (isinstance(groups, int) and isinstance(times, int) and isinstance(size, int)):
        return None
    if [*before[:axis], times, *before[axis + 1 :]] != list(after):
        return None
    heads = groups * times
    shape: Shape = (batch, length, groups * size)
    joined: Shape = (batch, length, heads * size)
    if axis == 2:
        shape, joined = (batch, groups, length, size), (batch, heads, length, size)
    return _Shared(value, order, groups, heads, size, shape) if tuple(whole) == joined else None


def _reshaped(shared: _Shared, node: ir.Node, editor: Editor) -> ir.Value:
    target = editor.constant(np.array(shared.target, np.int64), hint="shared", before=node)
    moved = editor.transposed(shared.value, shared.order, before=node, origin=[node])
    return editor.add(
        "Reshape",
        [moved, target],
        before=node,
        hint=f"{shared.value.name}_shared",
        like=shared.value,
        shape=ir.Shape(shared.shape),
        origin=[node],
    )
