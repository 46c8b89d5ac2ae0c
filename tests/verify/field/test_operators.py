"""Operators against onnx's backend tests, and against the bodies that the standard has for them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from relayout.verify.field.context import FieldContext
from relayout.verify.field.evaluator import FieldRun
from relayout.verify.field.operators.registry import KERNELS, MOVEMENTS
from relayout.verify.field.residues import PRIME, encoded
from relayout.verify.field.values import (
    FieldSequence,
    FieldTensor,
    FieldValue,
    UnknownValue,
    true_tensor,
)
from relayout.verify.field.verdict import compared
from tests.suites.backend import Case, case, case_names

Array = Any

# Operators that the field computes exactly on whole numbers.
EXACT = (
    *("Add", "Sub", "Mul", "Div", "Neg", "Reciprocal", "Sum", "Mean", "Identity"),
    *("MatMul", "Einsum", "Conv", "ConvTranspose", "ConvInteger", "MatMulInteger"),
    *("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceProd", "CumSum", "AveragePool"),
    *("GlobalAveragePool", "Transpose", "Concat", "Split", "Slice", "Pad", "Expand", "Tile"),
    *("DepthToSpace", "SpaceToDepth", "ReverseSequence", "Trilu", "Reshape", "Flatten"),
    *("Squeeze", "Unsqueeze", "Shape", "Size", "Constant", "ConstantOfShape", "EyeLike"),
    *("Gather", "GatherElements", "GatherND", "Compress", "NonZero", "Where", "Xor"),
    *("And", "Or", "Not", "DequantizeLinear", "CastLike", "RotaryEmbedding"),
)
# Tests whose numbers are not whole, or that round.
NOT_WHOLE = (
    "float16",
    "FLOAT16",
    "BFLOAT16",
    "FLOAT8",
    "FLOAT4",
    "FLOAT_to",
    "_to_FLOAT",
    "E8M0",
    "e5m2",
)
# Operators that must be what their bodies in the standard are.
DEFINED = (
    *("AffineGrid", "CenterCropPad", "CausalConvWithState", "GroupNormalization", "HardSigmoid"),
    *("HardSwish", "LayerNormalization", "LinearAttention", "NegativeLogLikelihoodLoss"),
    *("RMSNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"),
    *("ReduceSumSquare", "Relu", "RotaryEmbedding", "Softmax", "SoftmaxCrossEntropyLoss"),
    *("LogSoftmax", "SwiGLU", "Swish", "DepthToSpace", "SpaceToDepth"),
)
# Operators whose parameters in floats are inputs of the tests.
STEERED = ("Resize", "Range", "OneHot")
SUFFIXES = ("_expanded", "_expanded_ver18")


@cache
def _single_node_tests() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, name in case_names():
        nodes = case(kind, name).model.graph.node if kind == "node" else []
        if len(nodes) == 1 and not any(mark in name for mark in NOT_WHOLE):
            found.setdefault(nodes[0].op_type, []).append(name)
    return found


def _whole(value: Array) -> Array:
    """Inputs as whole numbers, of which sums are exact."""
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return np.round(value * 2).astype(value.dtype) if is_float else value


def _fed(value: Array, *, steers: bool = False) -> FieldValue:
    if isinstance(value, list):
        items = [_fed(item) for item in value]
        return FieldSequence(tuple(item for item in items if isinstance(item, FieldTensor)))
    tensor = true_tensor(value, fed=True)
    if not tensor.is_float or steers:
        return tensor
    return FieldTensor(encoded(value), tensor.element, is_true=False, fed=True)


def _outputs(model: onnx.ModelProto, inputs: list[Array]) -> dict[str, FieldValue]:
    names = [value.name for value in model.graph.input]
    steered = any(node.op_type in STEERED for node in model.graph.node)
    feeds = {
        name: _fed(value, steers=steered and name != "X")
        for name, value in zip(names, inputs, strict=False)
    }
    return FieldRun(model, FieldContext(1)).outputs(feeds)


def _rational(residue: int) -> float:
    """The only fraction of two numbers below sqrt(PRIME / 2) that has this residue."""
    above, below, old, new = PRIME, residue, 0, 1
    while below * below * 2 > PRIME:
        times = above // below
        above, below, old, new = below, above - times * below, new, old - times * new
    return below / new


def _agrees(value: FieldValue, wanted: Array) -> bool:
    if isinstance(value, FieldSequence):
        pairs = zip(value.items, wanted, strict=True)
        return all(_agrees(*pair) for pair in pairs)
    assert isinstance(value, FieldTensor), value
    assert value.shape == wanted.shape
    if wanted.dtype.kind in "OU":
        return bool(np.all(value.data == wanted))
    residues = value.residues()
    unequal = residues != encoded(wanted)
    fractions = np.array([_rational(int(residue)) for residue in residues[unequal]])
    return bool(np.allclose(fractions, wanted[unequal].astype(np.float64), rtol=1e-4, atol=1e-6))


@pytest.mark.parametrize("op_type", EXACT)
def test_exact_on_whole_numbers(op_type: str) -> None:
    names = _single_node_tests()[op_type]
    wrong = [name for name in names if not _is_exact(case("node", name))]
    assert names
    assert wrong == []


@pytest.mark.parametrize("op_type", STEERED)
def test_exact_where_floats_steer(op_type: str) -> None:
    """Of Resize those that take elements; its other weights are no fractions of small numbers."""
    names = _single_node_tests()[op_type]
    if op_type == "Resize":
        unknown = ("crop", "not_larger", "not_smaller", "linear", "cubic")
        names = [name for name in names if not any(mark in name for mark in unknown)]
    assert names
    assert [name for name in names if not _is_exact(case("node", name))] == []


def _is_exact(test: Case) -> bool:
    inputs = [_whole(value) for value in test.data[0][0]]
    feeds = dict(zip((value.name for value in test.model.graph.input), inputs, strict=False))
    wanted = ReferenceEvaluator(test.model).run(None, feeds)
    found = _outputs(test.model, inputs)
    return all(_agrees(*pair) for pair in zip(found.values(), wanted, strict=True))


@pytest.mark.parametrize("op_type", DEFINED)
def test_as_its_body_in_the_standard(op_type: str) -> None:
    names = {name for kind, name in case_names() if kind == "node"}
    tests = [name for name in _single_node_tests()[op_type] if name + "_expanded" in names]
    tests += [name for name in _single_node_tests()[op_type] if name + "_expanded_ver18" in names]
    assert tests
    for name in tests:
        for suffix in SUFFIXES:
            if name + suffix in names:
                _assert_same(case("node", name), case("node", name + suffix))


def _assert_same(plain: Case, expanded: Case) -> None:
    inputs = plain.data[0][0]
    pairs = zip(
        _outputs(plain.model, inputs).values(),
        _outputs(expanded.model, inputs).values(),
        strict=True,
    )
    for left, right in pairs:
        output, _ = compared(plain.name, left, right)
        assert (output.status, output.reason) == ("equal", ""), plain.name


def test_no_backend_test_fails_otherwise_than_by_saying_what_is_unknown() -> None:
    """Every node test runs on what it is fed; what is unknown names its operator."""
    unknown: dict[str, str] = {}
    for kind, name in case_names():
        test = case(kind, name) if kind == "node" else None
        if test is None or not all(isinstance(x, np.ndarray) for x in test.data[0][0]):
            continue
        for value in _outputs(test.model, test.data[0][0]).values():
            if isinstance(value, UnknownValue):
                unknown[name] = value.reason
    operators = {reason.partition(":")[0].partition(" ")[0] for reason in unknown.values()}
    assert operators <= {
        *("Bernoulli", "RandomUniformLike", "BatchNormalization", "BlackmanWindow", "Dropout"),
        *("HammingWindow", "HannWindow", "MaxPool", "MaxUnpool", "NonMaxSuppression", "Range"),
        *("Resize", "StringSplit", "TfIdfVectorizer", "Unique", "Upsample", "Momentum"),
        *("Loop", "Scan"),
    }


def test_every_rule_is_of_an_operator_that_exists() -> None:
    standard = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    own = {name for domain, name in [*KERNELS, *MOVEMENTS] if not domain}
    assert own <= standard
