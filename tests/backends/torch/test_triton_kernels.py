"""Kernels in Triton, run by a small stand-in for it, give what the nodes of their groups give."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

torch = pytest.importorskip("torch")

from relayout.backends.torch.choose.parts import parts_of  # noqa: E402
from relayout.backends.torch.choose.tuning import groups_of  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402 - torch may be missing
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.program import Program, ProgramStep  # noqa: E402
from relayout.backends.torch.providers.library_group import LibraryGroup  # noqa: E402
from relayout.backends.torch.providers.triton_depthwise import depthwise_kernels  # noqa: E402
from relayout.backends.torch.providers.triton_grouped import grouped_kernels  # noqa: E402
from relayout.backends.torch.providers.triton_product import (  # noqa: E402
    pixel_kernels,
    product_kernels,
)
from relayout.backends.torch.providers.window import sliding_of  # noqa: E402
from tests.backends.torch import small_triton  # noqa: E402
from tests.ops import law  # noqa: E402

TOLERANCE = 2e-5

Writer = Callable[[LibraryGroup], Sequence[Any]]
ENDS: dict[str, list[tuple[str, list[str]]]] = {
    "nothing": [],
    "relu": [("Relu", [])],
    "relu6": [("Clip", ["low", "high"])],
    "one bound": [("Clip", ["low"])],
    "sum": [("Add", ["other"])],
    "sum and relu": [("Add", ["other"]), ("Relu", [])],
    "gelu": [("Gelu", [])],
    "hard swish": [("HardSwish", [])],
    "sigmoid": [("Sigmoid", [])],
}


@pytest.fixture(autouse=True)
def _triton(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in small_triton.modules().items():
        monkeypatch.setitem(sys.modules, name, module)


def model_of(
    first: onnx.NodeProto, shapes: tuple[Sequence[int], Sequence[int]], weights: Any, end: str
) -> onnx.ModelProto:
    """A product or convolution that writes `v0`, and what follows it."""
    nodes, value = [first], "v0"
    for op_type, operands in ENDS[end]:
        nodes.append(helper.make_node(op_type, [value, *operands], [f"v{len(nodes)}"]))
        value = nodes[-1].output[0]
    read = {name for node in nodes for name in node.input}
    weights = weights | {"low": np.float32(-0.25), "high": np.float32(0.5)}
    source, result = shapes
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, source)]
    if "other" in read:
        inputs.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, result))
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, result)],
        [
            numpy_helper.from_array(np.asarray(array), name)
            for name, array in weights.items()
            if name in read
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def assert_kernels_right(model: onnx.ModelProto, writer: Writer) -> None:
    drawn = np.random.default_rng(5)
    feeds = {
        value.name: drawn.standard_normal(
            [dim.dim_value for dim in value.type.tensor_type.shape.dim], np.float32
        )
        for value in model.graph.input
    }
    (wanted,) = law.run(model, feeds, "ort")
    program = program_of(model)
    (part,) = parts_of(program.model.graph, groups_of(program.model))
    assert part.fused is not None
    kernels = writer(part.fused)
    assert kernels
    for kernel in kernels:
        step = ProgramStep(part.nodes, kernel)
        source = write_source(Program(program.model, (step,)))
        assert "@triton.jit" in source.text
        (got,) = loaded(source, "cpu")(feeds).values()
        law.compare(kernel.name, wanted, got, TOLERANCE)


def depthwise(group: LibraryGroup) -> Sequence[Any]:
    window = sliding_of(group.anchor)
    assert window is not None
    return depthwise_kernels(group, window)


def pixels(group: LibraryGroup) -> Sequence[Any]:
    window = sliding_of(group.anchor)
    assert window is not None
    return pixel_kernels(group, window)


def grouped(group: LibraryGroup) -> Sequence[Any]:
    window = sliding_of(group.anchor)
    assert window is not None
    return grouped_kernels(group, window)


WINDOWS = [(3, 1, (1, 1, 1, 1)), (3, 2, (1, 1, 1, 1)), (7, 1, (3, 3, 3, 3)), (2, 3, (0, 1, 1, 0))]


@pytest.mark.parametrize("end", ["nothing", "relu6", "one bound", "sum and relu"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("depth", [16, 20])
def test_filter_for_each_channel(
    depth: int, window: tuple[int, int, tuple[int, ...]], end: str
) -> None:
    size, stride, pads = window
    drawn = np.random.default_rng(size)
    weights = {
        "w": drawn.standard_normal((depth, 1, size, size), np.float32),
        "b": drawn.standard_normal(depth, np.float32),
    }
    operands = ["x", "w"] if end == "nothing" else ["x", "w", "b"]
    first = helper.make_node("Conv", operands, ["v0"], group=depth, strides=[stride] * 2, pads=pads)
    height = (9 + pads[0] + pads[2] - size) // stride + 1
    width = (11 + pads[1] + pads[3] - size) // stride + 1
    shapes = ([2, depth, 9, 11], [2, depth, height, width])
    assert_kernels_right(model_of(first, shapes, weights, end), depthwise)


@pytest.mark.parametrize("end", list(ENDS))
@pytest.mark.parametrize("depth", [24, 64])
def test_product_with_a_matrix(depth: int, end: str) -> None:
    weights = {"w": np.random.default_rng(1).standard_normal((depth, 72), np.float32)}
    first = helper.make_node("MatMul", ["x", "w"], ["v0"])
    model = model_of(first, ([3, 50, depth], [3, 50, 72]), weights, end)
    assert_kernels_right(model, product_kernels)


@pytest.mark.parametrize("end", ["relu", "relu6", "sum"])
def test_product_of_every_pixel(end: str) -> None:
    drawn = np.random.default_rng(2)
    weights = {
        "w": drawn.standard_normal((40, 24, 1, 1), np.float32),
        "b": drawn.standard_normal(40, np.float32),
    }
    first = helper.make_node("Conv", ["x", "w", "b"], ["v0"])
    model = model_of(first, ([2, 24, 7, 13], [2, 40, 7, 13]), weights, end)
    assert_kernels_right(model, pixels)


@pytest.mark.parametrize("end", ["nothing", "relu6", "sum and relu", "hard swish"])
@pytest.mark.parametrize("window", [*WINDOWS, (1, 1, (0, 0, 0, 0))], ids=str)
@pytest.mark.parametrize("widths", [(4, 4, 32), (24, 24, 3), (8, 4, 6), (40, 48, 2)], ids=str)
def test_groups_of_channels(
    widths: tuple[int, int, int], window: tuple[int, int, tuple[int, ...]], end: str
) -> None:
    """Channels that a group reads and writes, and how many groups there are."""
    (read, written, groups), (size, stride, pads) = widths, window
    drawn = np.random.default_rng(size)
    taps = drawn.standard_normal((groups * written, read, size, size), np.float32)
    weights = {
        "w": taps / np.float32(size * read**0.5),
        "b": drawn.standard_normal(groups * written, np.float32),
    }
    operands = ["x", "w"] if end == "nothing" else ["x", "w", "b"]
    settings: dict[str, Any] = {"group": groups, "strides": [stride] * 2, "pads": pads}
    first = helper.make_node("Conv", operands, ["v0"], **settings)
    height = (9 + pads[0] + pads[2] - size) // stride + 1
    width = (11 + pads[1] + pads[3] - size) // stride + 1
    shapes = ([2, groups * read, 9, 11], [2, groups * written, height, width])
    assert_kernels_right(model_of(first, shapes, weights, end), grouped)


def test_dilated_groups_of_channels() -> None:
    weights = {"w": np.random.default_rng(3).standard_normal((24, 6, 3, 3), np.float32)}
    settings: dict[str, Any] = {"group": 4, "dilations": [2, 3], "pads": [2, 3, 2, 3]}
    first = helper.make_node("Conv", ["x", "w"], ["v0"], **settings)
    model = model_of(first, ([1, 24, 7, 9], [1, 24, 7, 9]), weights, "relu")
    assert_kernels_right(model, grouped)


def test_other_convolutions_have_no_kernel_for_filters_per_channel() -> None:
    weights = {"w": np.ones((8, 2, 3, 3), np.float32)}
    first = helper.make_node("Conv", ["x", "w"], ["v0"], group=4)
    program = program_of(model_of(first, ([1, 8, 5, 5], [1, 8, 3, 3]), weights, "nothing"))
    (part,) = parts_of(program.model.graph, groups_of(program.model))
    assert part.fused is not None
    assert not depthwise(part.fused)
