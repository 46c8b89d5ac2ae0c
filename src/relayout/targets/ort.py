"""What ONNX Runtime runs on a CPU beyond standard ONNX."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.read import NodeView
from relayout.layout.transport import Changes
from relayout.ops.einsum import reads_nothing
from relayout.ops.matmul import (
    PLAIN,
    TRANSPOSED,
    Dialect,
    FactorReading,
    readings_by_flags,
    written_flags,
)
from relayout.ops.product import matmul_rule, write_matmul
from relayout.ops.rule import OpRule
from relayout.ops.vector_product import product_rule

CONTRIB_DOMAIN = "com.microsoft"
FUSED_MATMUL = "FusedMatMul"
FUSED_TYPES = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE))
"""For other types the runtime inserts Casts around a FusedMatMul of floats."""

ROWS_FIRST = (FactorReading(rows_first=True), FactorReading(transposed=True, rows_first=True))
ROWS_FIRST_RANKS = (3, 4)


def available(view: NodeView) -> tuple[FactorReading, ...]:
    """Rows are read from in front of the batch only where both factors have a batch alike."""
    is_alike = view.rank(0) == view.rank(1) and view.rank(0) in ROWS_FIRST_RANKS
    return (PLAIN, TRANSPOSED, *(ROWS_FIRST if is_alike else ()))


def write_fused(view: NodeView, first: FactorReading, second: FactorReading) -> Changes | None:
    """With flags, the runtime writes no zeros where there is nothing to sum."""
    return None if reads_nothing(view) else Changes(written_flags(first, second))


def write_product(view: NodeView, first: FactorReading, second: FactorReading) -> Changes | None:
    """A standard operator where one computes it, else FusedMatMul, which has flags for batches."""
    standard = write_matmul(view, first, second)
    if standard is not None or view.dtype(0) not in FUSED_TYPES:
        return standard
    flags = write_fused(view, first, second)
    return flags and flags | Changes(op_type=FUSED_MATMUL, domain=CONTRIB_DOMAIN)


RULES: dict[tuple[str, str], OpRule] = {
    ("", "MatMul"): matmul_rule(Dialect(write_product, available=available)),
    (CONTRIB_DOMAIN, FUSED_MATMUL): product_rule(
        Dialect(write_fused, readings_by_flags, available)
    ),
}
