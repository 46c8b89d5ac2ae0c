"""Transposes that copy whole rows, kept from being moved by a runtime that would merge them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import perm_of, shape_of
from relayout.rewrite.slow_transposes import reshaped
from relayout.targets.prices.table import RuntimePrices
from relayout.targets.transpose_prices import FLATTEN_TAKES_ANY_TYPE, is_better_kept


@dataclass(frozen=True, slots=True)
class KeepRowsApart:
    """A Transpose that copies rows stays where it is, behind a Flatten.

    Given:  y = Transpose<perm=[0,2,1,3]>(x); z = Add(y, w)
    Result: y = Transpose<perm=[0,2,1,3]>(x); a = Flatten(y); b = Reshape(a, [2,8,8,64])
            z = Add(b, w)

    The runtime would move it through the Add to the other operand, where it becomes one with a move
    of another axis that leads there: of two fast Transposes, one without a fast kernel.
    """

    prices: RuntimePrices
    dims: Mapping[str, int]
    name: str = "keep a Transpose of rows in its place"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source, shape = perm_of(node), node.inputs[0], shape_of(node.inputs[0])
        if order is None or source is None or shape is None:
            return None
        if editor.region.version < FLATTEN_TAKES_ANY_TYPE:
            return None
        if not is_better_kept(node, self.prices, self.dims):
            return None
        moved = editor.transposed(source, order, before=node, origin=[node])
        flat = editor.add(
            "Flatten", [moved], {"axis": 1}, before=node, hint=f"{moved.name}_flat", like=moved
        )
        view = reshaped(flat, order.reorder(shape), node, editor)
        editor.substitute(node.outputs[0], view, origin=node)
        editor.discard(node)
        return []
