"""Matrix products and determinants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps, contrib_lengths, shuffles
from relayout.ops.broadcasting import aligned
from relayout.ops.facts import KnownLayout, LayoutFacts, LengthFacts, NumberFacts, OpFacts
from relayout.ops.kernels import COMPLEX, INJECTIVE, OPAQUE, KernelFacts, Role, WeightRule
from relayout.ops.kind import Kind
from relayout.ops.matmul import (
    PLAIN,
    Dialect,
    FactorReading,
    readings_by_flags,
    written_flags,
)
from relayout.ops.pointwise import product_as_convolution
from relayout.ops.rule import OpRule, barrier, first_operand
from relayout.ops.vector_product import product_rule

if TYPE_CHECKING:
    from relayout.graph.read import NodeView


@dataclass(frozen=True, slots=True)
class ProductForm:
    """Which operands of a matrix product, besides the left matrix, mean what."""

    right: int = 1
    single: tuple[int, ...] = ()
    """Scales and zero points that must be one number."""
    per_column: tuple[int, ...] = ()
    """Those of the right matrix, which may also be one number per column."""


FORMS = {
    "MatMul": ProductForm(),
    "MatMulInteger": ProductForm(single=(2,), per_column=(3,)),
    "QLinearMatMul": ProductForm(right=3, single=(1, 2, 6, 7), per_column=(4, 5)),
}


def matrix_product(view: NodeView, order: Permutation) -> Transport | Refusal:
    """Batch axes move; the rows of the left operand are one of them if the right is one matrix."""
    form = FORMS[view.op_type]
    right = view.shape(form.right)
    if right is None:
        return Refusal(f"the rank of {view.op_type}'s right operand is unknown")
    if not _has_plain_parameters(view, form):
        return Refusal(f"{view.op_type} has a scale or a zero point that is not one number")
    is_one_matrix = all(length == 1 for length in right[:-2])
    if not order.fixes(*range(order.rank - (1 if is_one_matrix else 2), order.rank)):
        return Refusal(f"{view.op_type} multiplies along the last axes, which must stay in place")
    result = order.insert(range(len(right) - order.rank))
    inputs: list[Permutation | None] = [order, *(None,) * (view.arity - 1)]
    if is_one_matrix:
        return Transport(tuple(inputs), (result,))
    inputs[form.right], unit_axes = aligned(len(right), result)
    unsqueezes = {form.right: unit_axes} if unit_axes else {}
    return Transport(tuple(inputs), (result,), Changes(unsqueezes=unsqueezes))


def pull_matrix_product(view: NodeView, result: Permutation) -> Permutation | Refusal:
    left, right = view.rank(0), view.rank(FORMS[view.op_type].right)
    if left is None or right is None:
        return Refusal(f"the rank of an operand of {view.op_type} is unknown")
    added = range(right - left)
    if result.rank != max(left, right) or not result.fixes(*added):
        return Refusal(f"{view.op_type}'s left operand lacks an axis that moves")
    return result.drop(added)


GEMM_TYPES = frozenset(
    (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
)
"""Runtimes have kernels of Gemm for these; for integers many have MatMul only."""

GEMM_WITHOUT_C = 11
"""The opset version from which Gemm's third operand may be left out."""


def write_gemm(_view: NodeView, first: FactorReading, second: FactorReading) -> Changes:
    return Changes(written_flags(first, second))


def write_matmul(view: NodeView, first: FactorReading, second: FactorReading) -> Changes | None:
    """MatMul reads both factors as they are; of two matrices it can be a Gemm, which has flags."""
    if (first, second) == (PLAIN, PLAIN):
        return Changes()
    if (view.rank(0), view.rank(1)) != (2, 2):
        return None
    if view.version < GEMM_WITHOUT_C or view.dtype(0) not in GEMM_TYPES:
        return None
    return write_gemm(view, first, second) | Changes(op_type="Gemm")


def matmul_rule(dialect: Dialect, *, convolves: bool = True) -> OpRule:
    """The rule of MatMul where it can be written in the ways of a dialect, or as a Conv."""
    other_form = product_as_convolution if convolves else matrix_product
    return product_rule(dialect, or_else=(other_form, pull_matrix_product))


def determinant(_view: NodeView, order: Permutation) -> Transport | Refusal:
    """A matrix and its transpose have the same determinant."""
    matrix = {order.rank - 2, order.rank - 1}
    if not order.keeps(matrix):
        return Refusal("Det reads its matrices along the last two axes")
    return Transport((order,), (order.drop(matrix),))


def pull_determinant(_view: NodeView, result: Permutation) -> Permutation:
    return result.insert({result.rank, result.rank + 1})


def _has_plain_parameters(view: NodeView, form: ProductForm) -> bool:
    single = all(view.is_one_number(index) for index in form.single)
    return single and all(
        view.is_one_number(index) or view.rank(index) == 1 for index in form.per_column
    )


def _integer_rule(exchange: tuple[int, ...]) -> OpRule:
    """A product of quantised factors, of which each has one scale where they change places."""
    slots = (0, exchange[0])

    def write(view: NodeView, first: FactorReading, second: FactorReading) -> Changes | None:
        parameters = [index for index in range(view.arity) if index not in slots]
        single = all(view.is_one_number(index) for index in parameters)
        return Changes() if (first, second) == (PLAIN, PLAIN) and single else None

    def can_exchange(view: NodeView) -> bool:
        """Runtimes have no kernel for signed bytes times unsigned ones, only for the reverse.

        A constant could be made unsigned with its zero point. But on many processors the kernels
        for mixed signs saturate and those for one sign do not, so the numbers would differ.
        """
        left, right = (view.dtype(slot) for slot in slots)
        return right in (left, ir.DataType.UINT8)

    return product_rule(
        Dialect(write, exchange=exchange, can_exchange=can_exchange),
        lead=first_operand,
        or_else=(matrix_product, pull_matrix_product),
    )


def _columns(view: NodeView) -> int | None:
    weight = view.constant(1)
    return 1 if weight is not None and weight.ndim == 2 else None


def _columns_by_flag(view: NodeView) -> int:
    return 0 if view.integer("transB", 0) else 1


def _multiplying(results: WeightRule | None = None) -> KernelFacts:
    return KernelFacts(
        Kind.COMPLEX, role=Role.PRODUCT, streamed=(0, 1), weight_results=results, has_rows=True
    )


MATRICES = LayoutFacts(KnownLayout.PLAIN)
PRODUCT = NumberFacts(sums_products=True, joins_quantisers=True)
ATTENTION = barrier("attention fixes the meaning of each of its axes")
OF_ONE_RUNTIME = barrier("a product with transposes of its own, known to one runtime only")

FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("MatMul",),
        matmul_rule(Dialect(write_matmul)),
        kernel=_multiplying(_columns),
        layout=MATRICES,
        axes=axis_maps.product,
        shuffles=shuffles.following(shuffles.matmul),
        numbers=PRODUCT,
    ),
    OpFacts(
        ("Gemm",),
        product_rule(Dialect(write_gemm, readings_by_flags)),
        kernel=_multiplying(_columns_by_flag),
        layout=MATRICES,
        shuffles=shuffles.following(shuffles.gemm),
        numbers=PRODUCT,
    ),
    OpFacts(
        ("MatMulInteger",),
        _integer_rule((1, 0, 3, 2)),
        kernel=COMPLEX,
        layout=MATRICES,
        shuffles=shuffles.following(shuffles.matmul_of_bytes(1, (2,), (3,))),
    ),
    OpFacts(
        ("QLinearMatMul",),
        _integer_rule((3, 4, 5, 0, 1, 2, 6, 7)),
        kernel=COMPLEX,
        layout=MATRICES,
        shuffles=shuffles.following(shuffles.matmul_of_bytes(3, (1, 2, 6, 7), (4, 5))),
        numbers=NumberFacts(quantises=True),
    ),
    OpFacts(("Det",), OpRule(determinant, pull_determinant), kernel=OPAQUE),
    OpFacts(("Attention", "LinearAttention"), ATTENTION, kernel=COMPLEX),
    OpFacts(("RotaryEmbedding",), ATTENTION, kernel=INJECTIVE),
    OpFacts(
        ("FlexAttention",),
        ATTENTION,
        domain="ai.onnx.preview",
        kernel=OPAQUE,
        computes_only=False,
    ),
    OpFacts(
        ("FusedMatMul",),
        OF_ONE_RUNTIME,
        domain="com.microsoft",
        kernel=_multiplying(),
        lengths=LengthFacts(shape=contrib_lengths.of_fused_product),
    ),
    OpFacts(
        ("TransposeMatMul",),
        OF_ONE_RUNTIME,
        domain="com.microsoft",
        computes_only=False,
        lengths=LengthFacts(shape=contrib_lengths.of_fused_product),
    ),
    OpFacts(
        ("MultiHeadAttention",),
        ATTENTION,
        domain="com.microsoft",
        kernel=COMPLEX,
        lengths=LengthFacts(shape=contrib_lengths.of_attention),
    ),
)
