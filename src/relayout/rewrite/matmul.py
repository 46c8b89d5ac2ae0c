"""A product reads the matrices under a Transpose: by a flag or, with a vector, by exchange."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import rank_of, shape_of
from relayout.layout.transport import Changes
from relayout.ops.product import GEMM_TYPES, GEMM_WITHOUT_C
from relayout.rewrite.transposes import transposed_source
from relayout.rewrite.worklist import consumers
from relayout.targets.ort import CONTRIB_DOMAIN, FUSED_MATMUL, FUSED_TYPES
from relayout.targets.target import Target

FLAGS = ("transA", "transB")


@dataclass(frozen=True, slots=True)
class FoldIntoGemm:
    """Gemm reads the matrix under the Transpose and toggles its flag.

    Given:  a = Transpose<perm=[1,0]>(x); y = Gemm<transA=t>(a, b)
    Result: y = Gemm<transA=1-t>(x, b)
    """

    name: str = "fold Transpose into Gemm"
    op_types: tuple[str, ...] = ("Gemm",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        sources = _swapped_sources(node)
        if not any(sources) or _has_references(node):
            return None
        for index, source in enumerate(sources):
            if source is None:
                continue
            flag = node.attributes.get_int(FLAGS[index], 0)
            editor.set_attribute(node, FLAGS[index], 1 - flag)
            _read_past_transpose(node, index, source, editor)
        return []


@dataclass(frozen=True, slots=True)
class FoldIntoMatMul:
    """MatMul of a Transpose is a product with flags, where the target has one.

    Given:  a = Transpose<perm=[..,j,i]>(x); y = MatMul(a, b)
    Result: y = Gemm<transA=1>(x, b) for matrices,
            y = com.microsoft.FusedMatMul<transA=1>(x, b) for batches on a target that has it
    """

    target: Target
    name: str = "fold Transpose into MatMul"
    op_types: tuple[str, ...] = ("MatMul",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        sources = _swapped_sources(node)
        if not any(sources):
            return None
        product = self._product(node)
        if product is None:
            return None
        op_type, domain = product
        operands = [source or value for source, value in zip(sources, node.inputs, strict=True)]
        flags = {FLAGS[index]: 1 for index, source in enumerate(sources) if source is not None}
        if op_type == "Gemm" and editor.region.version < GEMM_WITHOUT_C:
            operands.append(_zero(node, editor))
        return _replaced(node, operands, Changes(flags, op_type=op_type, domain=domain), editor)

    def _product(self, node: ir.Node) -> tuple[str, str] | None:
        ranks = [rank_of(value) for value in node.inputs]
        dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
        if any(rank is None or rank < 2 for rank in ranks):
            return None
        if ranks == [2, 2]:
            return ("Gemm", "") if dtype in GEMM_TYPES else None
        sums_nothing = any(0 in (shape_of(value) or ()) for value in node.inputs)
        if self.target.fused_matmul and dtype in FUSED_TYPES and not sums_nothing:
            return FUSED_MATMUL, CONTRIB_DOMAIN
        return None


@dataclass(frozen=True, slots=True)
class ExchangeWithVector:
    """The factors change places where one is a vector and the other is transposed.

    Given:  t = Transpose<perm=[..,j,i]>(x); y = MatMul(t, v), of a vector v
    Result: y = MatMul(v, x)

    Flags would not do: the vector gets an axis for the product, and ONNX Runtime, which folds such
    a Transpose into a flag, sums along the wrong one. So this is done even if the Transpose stays.
    """

    name: str = "exchange matrix and vector"
    op_types: tuple[str, ...] = ("MatMul",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        sources = _swapped_sources(node)
        if not any(sources) or 1 not in [rank_of(value) for value in node.inputs]:
            return None
        operands = [source or value for source, value in zip(sources, node.inputs, strict=True)]
        return _replaced(node, operands[::-1], Changes(), editor)


def _replaced(
    node: ir.Node, operands: Sequence[ir.Value | None], changes: Changes, editor: Editor
) -> list[ir.Node]:
    """Let a product of other operands stand for a node; the nodes to look at again."""
    (result,) = editor.adapted(node, operands, [node.outputs[0].shape], changes)
    touched = consumers(node.outputs[0])
    editor.substitute(node.outputs[0], result, origin=node)
    editor.discard(node)
    return touched


def _swapped_sources(node: ir.Node) -> list[ir.Value | None]:
    """For each of the two factors, what it is the transposed matrix of."""
    found: list[ir.Value | None] = []
    for value in node.inputs[:2]:
        inner = transposed_source(value)
        swapped = inner is not None and inner[1].swaps_last_two
        found.append(inner[0] if inner is not None and swapped else None)
    return found


def _read_past_transpose(node: ir.Node, index: int, source: ir.Value, editor: Editor) -> None:
    transposed = node.inputs[index]
    editor.read(node, index, source)
    if transposed is not None and (producer := transposed.producer()) is not None:
        editor.discard(producer)


def _zero(node: ir.Node, editor: Editor) -> ir.Value:
    dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
    zero = np.zeros((1,), (dtype or ir.DataType.FLOAT).numpy())
    return editor.constant(zero, hint=f"{node.name or 'Gemm'}_zero", before=node)


def _has_references(node: ir.Node) -> bool:
    return any(attribute.is_ref() for attribute in node.attributes.values())
