"""Masks of attentions that are constants and hide nothing, or all that comes later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import shape_of
from relayout.layout.transport import Array
from relayout.ops.registry import full_name
from relayout.rewrite.repeated import unrepeated
from relayout.targets.ort import CONTRIB_DOMAIN


@dataclass(frozen=True, slots=True)
class _MaskPlaces:
    """Where an operator has its mask."""

    mask: int
    causal: str
    """The attribute by which keys that come after a query are hidden."""
    past: tuple[int, ...]
    """Operands by which keys are more than those that it is given, or fewer."""


FORMS: Mapping[tuple[str, str], _MaskPlaces] = {
    ("", "Attention"): _MaskPlaces(3, "is_causal", (4, 5, 6)),
    (CONTRIB_DOMAIN, "MultiHeadAttention"): _MaskPlaces(5, "unidirectional", (4, 6, 7, 8, 9)),
}
OPERATORS = tuple(full_name(*key) for key in FORMS)


@dataclass(frozen=True, slots=True)
class DropIdleMask:
    """A mask that adds nothing to any score goes, so that kernels without masks can be used.

    Given:  y = Attention(q, k, v, mask), where mask is 0, or true, for all queries and keys
    Result: y = Attention(q, k, v)
    """

    name: str = "drop a mask that hides nothing"
    op_types: tuple[str, ...] = OPERATORS

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        form, shown = FORMS[node.domain, node.op_type], _shown(node)
        if shown is None or not shown.all():
            return None
        editor.read(node, form.mask, None)
        return [node]


@dataclass(frozen=True, slots=True)
class RaiseCausal:
    """A mask that hides the keys after each query, and no others, becomes an attribute.

    Given:  y = Attention(q, k, v, mask), where mask is 0 up to the diagonal and -inf after it
    Result: y = Attention<is_causal=1>(q, k, v)

    Exporters write the least finite number for -inf. Each query sees a key, so both hide alike.
    """

    name: str = "raise to a causal attention"
    op_types: tuple[str, ...] = OPERATORS

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        form, shown = FORMS[node.domain, node.op_type], _shown(node)
        if shown is None or not _is_causal(shown):
            return None
        editor.read(node, form.mask, None)
        editor.set_attribute(node, form.causal, 1)
        return [node]


def _shown(node: ir.Node) -> Array | None:
    """Which keys each query sees, by a mask that is a constant and hides or adds nothing."""
    form = FORMS[node.domain, node.op_type]
    value = _operand(node, form.mask)
    mask, shape = unrepeated(value), shape_of(value)
    if mask is None or any(_operand(node, index) is not None for index in form.past):
        return None
    lengths = (_length(node, 0), _length(node, 1))
    if shape is None or shape[-2:] != lengths or node.attributes.get_int(form.causal):
        return None
    if mask.dtype == np.bool_:
        return mask
    shown = mask == 0
    return shown if bool((shown | _hides(mask)).all()) else None


def _hides(mask: Array) -> Array:
    """Where a mask adds -inf, or the least number there is, beside which scores are nothing."""
    if mask.dtype.kind != "f":
        return np.zeros_like(mask, np.bool_)
    return np.asarray(mask.astype(np.float64) <= float(np.finfo(mask.dtype.name).min))


def _is_causal(shown: Array) -> bool:
    """Whether each query sees the keys up to its own place, in a square."""
    rows, columns = shown.shape[-2:] if shown.ndim > 1 else (1, 0)
    return rows == columns and bool((shown == np.tri(rows, dtype=np.bool_)).all())


def _operand(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _length(node: ir.Node, index: int) -> object:
    """How many queries or keys there are; heads side by side have three axes."""
    shape = shape_of(_operand(node, index))
    return None if shape is None or len(shape) not in {3, 4} else shape[-2]
