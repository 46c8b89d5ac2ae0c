"""What LiteRT runs: channels-last kernels with weights as OHWI, and products of swapped factors."""

from __future__ import annotations

from relayout.graph.read import NodeView
from relayout.layout.transport import Changes
from relayout.ops.matmul import Dialect, FactorReading, readings_by_flags
from relayout.ops.product import matmul_rule, write_matmul
from relayout.ops.rule import OpRule
from relayout.ops.vector_product import product_rule
from relayout.targets import nhwc
from relayout.targets.channels_last import OHWI
from relayout.targets.ort import CONTRIB_DOMAIN, FUSED_MATMUL, FUSED_TYPES, write_fused
from relayout.targets.profiles.limits import MoveLimit
from relayout.targets.profiles.profile import Profile

WEIGHTS = OHWI
MAX_RANK = 8
"""RESHAPE takes no more; what else has fewer is written with neighbours merged."""
MOVES = Profile(
    "litert",
    "what TRANSPOSE moves at once",
    (MoveLimit(6, "tried with ai-edge-litert 2.3.0: TRANSPOSE has at most 6 axes"),),
)
"""A Transpose that moves more axes is written as two."""


def write_product(view: NodeView, first: FactorReading, second: FactorReading) -> Changes | None:
    """Each factor may have its last two axes swapped: `adj_x` and `adj_y` of BATCH_MATMUL."""
    standard = write_matmul(view, first, second)
    if standard is not None or view.dtype(0) not in FUSED_TYPES:
        return standard
    flags = write_fused(view, first, second)
    return flags and flags | Changes(op_type=FUSED_MATMUL, domain=CONTRIB_DOMAIN)


RULES: dict[tuple[str, str], OpRule] = {
    **nhwc.rules(WEIGHTS),
    ("", "MatMul"): matmul_rule(Dialect(write_product), convolves=False),
    (CONTRIB_DOMAIN, FUSED_MATMUL): product_rule(Dialect(write_fused, readings_by_flags)),
}
