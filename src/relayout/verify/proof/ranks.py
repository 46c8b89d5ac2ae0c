"""The rank of a result of which nothing else is known."""

from __future__ import annotations

from relayout.verify.proof.call import NodeCall
from relayout.verify.proof.table import TermValue

LIKE_FIRST = (
    *("AveragePool", "Bernoulli", "CastLike", "Concat", "Conv", "ConvTranspose", "CumSum"),
    *(
        "DynamicQuantizeLinear",
        "EyeLike",
        "LayerNormalization",
        "MaxPool",
        "Pad",
        "RandomNormalLike",
    ),
    *("RandomUniformLike", "Resize", "ReverseSequence", "ScatterElements", "ScatterND", "Slice"),
    *("Softmax", "Split", "TensorScatter", "Tile", "TopK", "Transpose", "Trilu", "Upsample"),
)
BY_OPERAND = {"Reshape": 1, "ConstantOfShape": 0}
FIXED = {"NonMaxSuppression": 2, "NonZero": 2, "Range": 1, "Gemm": 2}


ALIKE = ("MaxPool", "Split", "TopK")
"""Operators all of whose results have one rank."""
SCALARS = {"DynamicQuantizeLinear": (1, 2)}
"""Which results have no axes."""


def rank_of(call: NodeCall, number: int) -> int | None:
    """The rank of a result, if operator and operands tell it."""
    name, operands = call.node.op_type, call.present()
    if call.node.domain:
        return None
    if number in SCALARS.get(name, ()):
        return 0
    if number and name not in ALIKE:
        return None
    if name in FIXED:
        return FIXED[name]
    if name in BY_OPERAND:
        return _count(operands[BY_OPERAND[name]])
    first = operands[0] if operands else None
    if first is None or first.dims is None:
        return None
    if name in LIKE_FIRST or (name.startswith("Reduce") and call.attribute("keepdims", 1)):
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
