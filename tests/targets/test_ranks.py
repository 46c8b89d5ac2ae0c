"""Kernels along one and along three axes; those along two are tested sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from relayout.api import optimize
from tests.ops import law
from tests.samples.sample import Array, small

SHAPES = {3: (2, 4, 9), 5: (2, 4, 5, 3, 6)}
SCALE, ZERO = np.asarray(0.5, np.float32), np.asarray(1, np.uint8)


def bytes_of(*shape: int) -> Array:
    return small(*shape, dtype=np.uint8, low=0, high=9)


def quantised(rank: int) -> list[Array]:
    kernel = bytes_of(6, 2, *(2,) * (rank - 2))
    return [bytes_of(*SHAPES[rank]), SCALE, ZERO, kernel, SCALE, ZERO, SCALE, ZERO]


def integers(rank: int) -> list[Array]:
    return [bytes_of(*SHAPES[rank]), bytes_of(6, 4, *(2,) * (rank - 2)), ZERO, ZERO]


def floats(rank: int) -> list[Array]:
    return [small(*SHAPES[rank])]


def convolved(rank: int) -> list[Array]:
    return [*floats(rank), small(4, 3, *(2,) * (rank - 2)), small(6)]


CASES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "QLinearConv": (quantised, {"group": 2}, "ort"),
    "ConvInteger": (integers, {}, "ort"),
    "ConvTranspose": (convolved, {"group": 2}, "ort"),
    "LpPool": (floats, {"kernel_shape": 2, "p": 2}, "ort"),
    "MaxPool": (floats, {"kernel_shape": 2, "dilations": 2}, "ort"),
    "GlobalAveragePool": (floats, {}, "reference"),
    "GlobalMaxPool": (floats, {}, "ort"),
    "GlobalLpPool": (floats, {"p": 1}, "ort"),
}


@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("op_type", CASES)
def test_there_and_back(op_type: str, rank: int) -> None:
    make, named, runtime = CASES[op_type]
    lists = {"kernel_shape", "dilations"}
    attributes = {k: [v] * (rank - 2) if k in lists else v for k, v in named.items()}
    given = _model(op_type, make(rank), attributes)
    there = optimize(given, target="nhwc", verify=False).model
    onnx.checker.check_model(there, full_check=True)
    (kernel,) = [node.op_type for node in there.graph.node if node.domain == "relayout"]
    assert kernel.startswith(f"{op_type}{rank - 2}d")
    back = optimize(there, target="onnx", verify=False).model
    assert [node.op_type for node in back.graph.node] == [op_type]
    feeds = {"x0": make(rank)[0]}
    expected = law.run(given, feeds, runtime)
    for model in (there, back):
        for wanted, got in zip(expected, law.run(model, feeds, runtime), strict=True):
            law.compare(op_type, wanted, got, 1e-6)


def _model(op_type: str, operands: list[Array], attributes: dict[str, Any]) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(len(operands))]
    x = operands[0]
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    result = onnx.TensorProto.INT32 if op_type == "ConvInteger" else dtype
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)],
        "one",
        [helper.make_tensor_value_info("x0", dtype, x.shape)],
        [helper.make_tensor_value_info("y", result, [f"d{axis}" for axis in range(x.ndim)])],
        [numpy_helper.from_array(a, n) for a, n in zip(operands[1:], names[1:], strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
