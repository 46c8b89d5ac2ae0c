"""Kernels along one and along three axes; those along two are tested sample by sample.

DepthToSpace and SpaceToDepth are not here: ONNX has them of four axes only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
LISTS = ("kernel_shape", "dilations")
"""Attributes with one entry per spatial axis."""


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
    return [*floats(rank), small(6, 2, *(2,) * (rank - 2)), small(6)]


def convolved_back(rank: int) -> list[Array]:
    return [*floats(rank), small(4, 3, *(2,) * (rank - 2)), small(3)]


def convolved_back_in_groups(rank: int) -> list[Array]:
    return [*floats(rank), small(4, 3, *(2,) * (rank - 2)), small(6)]


def normalised(rank: int) -> list[Array]:
    return [*floats(rank), small(4), small(4)]


def normalised_with_statistics(rank: int) -> list[Array]:
    return [*normalised(rank), small(4), np.ones(4, np.float32)]


def resized(rank: int) -> list[Array]:
    scales = [1, 1, *(2,) * (rank - 2)]
    return [*floats(rank), np.empty(0, np.float32), np.asarray(scales, np.float32)]


@dataclass(frozen=True, slots=True)
class Case:
    op_type: str
    operands: Callable[[int], list[Array]] = floats
    attributes: dict[str, Any] = field(default_factory=dict)
    kernel: bool = True
    """Whether it becomes a kernel; else the standard operator has parameters for each axis."""
    lacks: dict[str, str] = field(default_factory=dict)
    """By runtime, why it does not run the operator, channels first as well as last."""

    def model(self, rank: int) -> onnx.ModelProto:
        spatial = rank - 2
        attributes = {
            name: [value] * spatial if name in LISTS else value
            for name, value in self.attributes.items()
        }
        return _model(self.op_type, self.operands(rank), attributes)


LRN_RANKS = {"ort": "it normalises 4 axes only", "reference": "it normalises 4 axes only"}
CASES = {
    "Conv": Case("Conv", convolved, {"group": 2}),
    "QLinearConv": Case("QLinearConv", quantised, {"group": 2}),
    "ConvInteger": Case("ConvInteger", integers),
    "ConvTranspose": Case("ConvTranspose", convolved_back),
    "ConvTranspose in groups": Case(
        *("ConvTranspose", convolved_back_in_groups, {"group": 2}),
        lacks={"reference": "its ConvTranspose has one group"},
    ),
    "MaxPool": Case("MaxPool", floats, {"kernel_shape": 2, "dilations": 2}),
    "AveragePool": Case("AveragePool", floats, {"kernel_shape": 2}),
    "LpPool": Case("LpPool", floats, {"kernel_shape": 2, "p": 2}),
    "GlobalAveragePool": Case("GlobalAveragePool"),
    "GlobalMaxPool": Case(
        "GlobalMaxPool", lacks={"reference": "its result has too many or too few axes"}
    ),
    "GlobalLpPool": Case("GlobalLpPool", floats, {"p": 1}, lacks={"reference": "it has none"}),
    "BatchNormalization": Case("BatchNormalization", normalised_with_statistics),
    "InstanceNormalization": Case("InstanceNormalization", normalised),
    "GroupNormalization": Case("GroupNormalization", normalised, {"num_groups": 2}),
    "LRN": Case("LRN", floats, {"size": 3}, lacks=LRN_RANKS),
    "cubic Resize": Case(
        *("Resize", resized, {"mode": "cubic"}),
        lacks={"ort": "it interpolates two axes cubically, of 2 or 4"},
    ),
    "linear Resize": Case("Resize", resized, {"mode": "linear"}, kernel=False),
    "nearest Resize": Case("Resize", resized, {"mode": "nearest"}, kernel=False),
}
RUNTIMES = ("ort", "reference")


@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_there_and_back(name: str, rank: int) -> None:
    case = CASES[name]
    given = case.model(rank)
    there = optimize(given, target="nhwc", verify=False).model
    onnx.checker.check_model(there, full_check=True)
    called = [node.op_type for node in there.graph.node if node.domain == "relayout"]
    assert len(called) == case.kernel
    assert all(kernel.startswith(f"{case.op_type}{rank - 2}d") for kernel in called)
    back = optimize(there, target="onnx", verify=False).model
    assert [node.op_type for node in back.graph.node] == [case.op_type]
    feeds = {"x0": case.operands(rank)[0]}
    for runtime in RUNTIMES:
        if runtime not in case.lacks:
            _same(given, (there, back), feeds, runtime)


def _same(
    given: onnx.ModelProto, made: tuple[onnx.ModelProto, ...], feeds: dict[str, Array], runtime: str
) -> None:
    (wanted,) = law.run(given, feeds, runtime)
    assert _shape(given) in (wanted.shape, None)
    for model in made:
        (got,) = law.run(model, feeds, runtime)
        law.compare(runtime, wanted, got, 1e-6)


@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.lacks])
def test_a_runtime_that_is_left_out_does_not_run_the_operator_as_given(
    name: str, rank: int
) -> None:
    case = CASES[name]
    given, feeds = case.model(rank), {"x0": case.operands(rank)[0]}
    for runtime in case.lacks:
        assert _shape(given) is not None
        assert _result_shape(given, feeds, runtime) != _shape(given)


def _result_shape(
    model: onnx.ModelProto, feeds: dict[str, Array], runtime: str
) -> tuple[int, ...] | None:
    """The shape of what a runtime gives; None where it gives nothing."""
    try:
        (result,) = law.run(model, feeds, runtime)
    except Exception:  # noqa: BLE001 - runtimes raise what they please
        return None
    return tuple(result.shape)


def _shape(model: onnx.ModelProto) -> tuple[int, ...] | None:
    """The shape that onnx infers for the result; None where it infers none."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    bare.graph.output[0].type.tensor_type.ClearField("shape")
    (output,) = onnx.shape_inference.infer_shapes(bare, data_prop=True).graph.output
    kind = output.type.tensor_type
    return tuple(dim.dim_value for dim in kind.shape.dim) if kind.HasField("shape") else None


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
