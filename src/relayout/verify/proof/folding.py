"""Operators on constants, computed by the reference of the standard."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from relayout.verify.proof.call import NodeCall
from relayout.verify.proof.draws import draws
from relayout.verify.proof.lengths import product
from relayout.verify.proof.table import TermValue
from relayout.verify.proof.views import array_of

Array = np.ndarray[Any, Any]

# Elements of operands and results, at most.
LIMIT = 1 << 20
# Views are followed as they are; others have bodies.
NOT_FOLDED = (
    *("Constant", "ConstantOfShape", "Expand", "Flatten", "Identity", "If", "Loop", "Range"),
    *("Reshape", "Scan", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
)
UNDEFINED = (
    IndexError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    ZeroDivisionError,
)
"""What the reference raises for what it cannot compute."""


def folded(call: NodeCall) -> list[TermValue] | None:
    """The results as constants, if all operands are small ones."""
    operands = call.present()
    if not operands or call.node.domain or call.node.op_type in NOT_FOLDED or draws(call.node):
        return None
    if len(call.node.output) > 1 or not all(_small(call, value) for value in operands):
        return None
    feeds = {
        f"x{i}": _numbers(call, value) for i, value in enumerate(call.operands) if value is not None
    }
    try:
        result = _evaluator(_alone(call)).run(None, feeds, attributes={})
    except UNDEFINED:
        return None  # what the runtime makes of it is not known
    return [call.constant(np.asarray(next(iter(result))))]


def _numbers(call: NodeCall, value: TermValue) -> Array:
    """The numbers of a constant; in double precision where rounding may change."""
    array = array_of(call.table, value)
    wider = call.table.ledger is not None and array.dtype.kind == "f"
    return array.astype(np.float64) if wider else array


def _small(call: NodeCall, value: TermValue) -> bool:
    if value.term not in call.table.arrays or value.dims is None:
        return False
    size = product(list(value.shape))
    return isinstance(size, int) and size <= LIMIT


@lru_cache(maxsize=1024)
def _evaluator(function: bytes) -> ReferenceEvaluator:
    """What evaluates a node; the arithmetic of shapes has few forms, so most are met again."""
    return ReferenceEvaluator(onnx.FunctionProto.FromString(function))


def _alone(call: NodeCall) -> bytes:
    """The node as a function of its operands, without names."""
    names = ["" if value is None else f"x{i}" for i, value in enumerate(call.operands)]
    alone = onnx.NodeProto(op_type=call.node.op_type, input=names, output=["y"])
    alone.attribute.extend(call.node.attribute)
    given = [name for name in names if name]
    opset = [onnx.helper.make_opsetid("", call.version)]
    function = onnx.helper.make_function("proof", "folded", given, ["y"], [alone], opset)
    return bytes(function.SerializeToString(deterministic=True))
