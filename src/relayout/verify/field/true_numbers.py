"""Calls on true numbers: integers, and floats that depend on constants and shapes only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from relayout.verify.field.values import FieldTensor, residue_tensor, true_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall

# What shapes are mostly computed with: the evaluator takes 0.2 ms a node.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Equal": np.equal,
    "Less": np.less,
    "Greater": np.greater,
}
CONTROL = ("If", "Loop", "Scan")
RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli")
RANDOM_TOO = ("Multinomial", "Dropout")


def computed_truly(call: FieldCall) -> tuple[FieldTensor, ...] | None:
    """Results as true numbers, or None where the evaluator does not have the operator."""
    if call.domain or not call.operands or call.op_type in (*CONTROL, *RANDOM, *RANDOM_TOO):
        return None
    fed = any(tensor.fed for tensor in call.tensors())
    if call.op_type in BINARY:
        left, right = (tensor.data for tensor in call.tensors())
        return (_result(np.asarray(BINARY[call.op_type](left, right)), fed),)
    given = [tensor.data for tensor in call.tensors()]
    names = [f"in{i}" for i in range(len(call.operands)) if call.has(i)]
    results = _run(call, dict(zip(names, given, strict=True)))
    if results is None or not all(isinstance(result, np.ndarray) for result in results):
        return None
    return tuple(_result(result, fed) for result in results)


def _result(data: Any, fed: bool) -> FieldTensor:
    """Floats that come from the inputs are residues."""
    tensor = true_tensor(data, fed=fed)
    if fed and tensor.is_float:
        return residue_tensor(tensor.residues(), tensor.element)
    return tensor


def _run(call: FieldCall, feeds: dict[str, Any]) -> Sequence[Any] | None:
    evaluator = _evaluator(call.node().SerializeToString(deterministic=True), call.version)
    if evaluator is None:
        return None
    with np.errstate(all="ignore"):
        try:
            return list(evaluator.run(None, feeds))
        except Exception:  # noqa: BLE001 - the evaluator raises what its operators please
            return None


@lru_cache(maxsize=256)
def _evaluator(message: bytes, version: int) -> ReferenceEvaluator | None:
    node = onnx.NodeProto.FromString(message)
    untyped = onnx.helper.make_value_info
    inputs = [untyped(name, onnx.TypeProto()) for name in dict.fromkeys(filter(None, node.input))]
    outputs = [untyped(name, onnx.TypeProto()) for name in node.output]
    graph = onnx.helper.make_graph([node], "one", inputs, outputs)
    opset = onnx.helper.make_opsetid("", version)
    try:
        return ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=[opset]))
    except (NotImplementedError, RuntimeError, KeyError):
        return None
