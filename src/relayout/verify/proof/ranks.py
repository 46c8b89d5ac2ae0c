"""The rank of a result of which nothing else is known."""

from __future__ import annotations

from relayout.verify.proof.call import NodeCall
from relayout.verify.proof.table import TermValue

LIKE_FIRST = (
    *("AveragePool", "Concat", "Conv", "ConvTranspose", "CumSum", "LayerNormalization", "MaxPool"),
    *("Pad", "Resize", "Slice", "Softmax", "Split", "Tile", "TopK", "Transpose", "Trilu"),
)
BY_OPERAND = {"Reshape": 1, "ConstantOfShape": 0}
FIXED = {"NonMaxSuppression": 2, "NonZero": 2, "Range": 1, "Gemm": 2}


def rank_of(call: NodeCall) -> int | None:
    """The rank of the first result, if operator and operands tell it; None for several results."""
    name, operands = call.node.op_type, call.present()
    if call.node.domain or (len(call.node.output) > 1 and name not in ("Split", "TopK")):
        return None
    if name in FIXED:
        return FIXED[name]
    if name in BY_OPERAND:
        return _count(operands[BY_OPERAND[name]])
    first = operands[0] if operands else None
    if first is None or first.dims is None:
        return None
    if name in LIKE_FIRST:
        return first.rank
    if name == "Expand":
        count = _count(operands[1])
        return None if count is None else max(first.rank, count)
    return None


def _count(numbers: TermValue) -> int | None:
    """How many numbers a vector holds."""
    if numbers.dims is None or numbers.rank != 1:
        return None
    count = numbers.shape[0]
    return count if isinstance(count, int) else None
