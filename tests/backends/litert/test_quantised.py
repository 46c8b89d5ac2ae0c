"""Quantised models: computed on bytes with the steps that their quantisers have."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from relayout.backends.litert.compiling import compile_model
from relayout.backends.litert.flat_graph import FlatGraph, FlatOperator, FlatTensor, Quantisation
from relayout.backends.litert.interpreting import LiteModel
from relayout.backends.litert.moved_bytes import quantised_first
from relayout.backends.litert.steps import steps_of
from relayout.backends.options import CompileOptions
from relayout.verify.verdict import NumericOptions, NumericVerdict, WithinSteps
from tests.backends.litert.building import (
    assert_runs_alike,
    builtins_of,
    drawn,
    feeds_of,
    model_of,
)

Held = dict[str, Any]


def quantiser(name: str, kind: Any, scale: float, zero: int) -> tuple[list[onnx.NodeProto], Held]:
    """What takes `name` to bytes and back, as `name_q` and `name_d`."""
    steps = [f"{name}_scale", f"{name}_zero"]
    nodes = [
        helper.make_node("QuantizeLinear", [name, *steps], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", *steps], [f"{name}_d"]),
    ]
    return nodes, {steps[0]: np.float32(scale), steps[1]: np.asarray(zero, kind)}


def weight(name: str, shape: tuple[int, ...]) -> tuple[list[onnx.NodeProto], Held]:
    """A weight in bytes, with a step for each output."""
    data = np.random.default_rng(3).integers(-127, 128, shape).astype(np.int8)
    scales = (0.002 + 0.001 * np.arange(shape[0])).astype(np.float32)
    parts = [f"{name}_q", f"{name}_scale", f"{name}_zero"]
    held = dict(zip(parts, (data, scales, np.zeros(shape[0], np.int8)), strict=True))
    return [helper.make_node("DequantizeLinear", parts, [f"{name}_d"], axis=0)], held


def network(kind: Any, group: int = 1) -> onnx.ModelProto:
    """A convolution, a pool and a sum between quantisers."""
    zero = 128 if kind is np.uint8 else 0
    parts = [
        quantiser("x", kind, 0.03, zero),
        weight("w", (8, 8 // group, 3, 3)),
        quantiser("c", kind, 0.06, zero - 20),
        quantiser("p", kind, 0.06, zero - 20),
        quantiser("s", kind, 0.09, zero - 10),
    ]
    held = {name: each for _, constants in parts for name, each in constants.items()}
    held["bias"] = drawn(8)
    pads: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    nodes = [
        *parts[0][0],
        *parts[1][0],
        helper.make_node("Conv", ["x_d", "w_d", "bias"], ["c"], group=group, **pads),
        *parts[2][0],
        helper.make_node("MaxPool", ["c_d"], ["p"], kernel_shape=[3, 3], **pads),
        *parts[3][0],
        helper.make_node("Add", ["c_d", "p_d"], ["s"]),
        *parts[4][0],
    ]
    return model_of(nodes, {"x": (1, 8, 6, 7)}, ["s_d"], held)


def optimised(model: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    """What ONNX Runtime computes, on bytes where it has kernels for them."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)[0]


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("group", [1, 8])
def test_what_lies_between_quantisers_is_computed_on_bytes(kind: Any, group: int) -> None:
    model = network(kind, group)
    compiled = compile_model(model, CompileOptions(inputs=NumericOptions()))
    layer = "CONV_2D" if group == 1 else "DEPTHWISE_CONV_2D"
    builtins = builtins_of(compiled)
    assert {layer, "MAX_POOL_2D", "ADD"} < set(builtins)
    assert builtins.count("QUANTIZE") == builtins.count("DEQUANTIZE") == 1
    assert _types(compiled, layer) == ["INT8", "INT8", "INT32", "INT8"]
    feeds = feeds_of(model)
    steps = np.abs(compiled(feeds)["s_d"] - optimised(model, feeds)) / 0.09
    assert np.mean(steps < 1.01) >= 0.999


def head(step: float = 0.05) -> onnx.ModelProto:
    """The mean of each channel and a layer, quantised behind what moves numbers."""
    parts = [
        quantiser("x", np.uint8, 0.03, 128),
        quantiser("f", np.uint8, 0.03, 128),
        quantiser("t", np.uint8, 0.03, 128),
        weight("w", (12, 8)),
        quantiser("y", np.uint8, step, 100),
    ]
    held = {name: each for _, constants in parts for name, each in constants.items()}
    held["bias"] = drawn(12)
    nodes = [
        *parts[0][0],
        helper.make_node("GlobalAveragePool", ["x_d"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        *parts[1][0],
        helper.make_node("Identity", ["f_d"], ["t"]),
        *parts[2][0],
        *parts[3][0],
        helper.make_node("Gemm", ["t_d", "w_d", "bias"], ["y"], transB=1),
        *parts[4][0],
    ]
    return model_of(nodes, {"x": (1, 8, 6, 7)}, ["y_d"], held)


def test_quantisers_stand_before_moves_and_weights_of_products_keep_their_steps() -> None:
    model = head()
    compiled = compile_model(model, CompileOptions(inputs=NumericOptions()))
    builtins = builtins_of(compiled)
    assert builtins.count("QUANTIZE") == builtins.count("DEQUANTIZE") == 1
    assert _types(compiled, "MEAN")[::2] == ["INT8", "INT8"]
    assert _types(compiled, "FULLY_CONNECTED") == ["INT8", "INT8", "INT32", "INT8"]
    steps = np.abs(compiled(feeds := feeds_of(model))["y_d"] - optimised(model, feeds)) / 0.05
    assert np.max(steps) < 1.01


def test_bytes_that_are_quantised_again_alike_are_the_same() -> None:
    source = FlatTensor("b", (2,), np.dtype(np.int8), steps=Quantisation((0.5,), (3,)))
    numbers = FlatTensor("n", (2,), np.dtype(np.float32))
    again = FlatTensor("a", (2,), np.dtype(np.int8), steps=Quantisation((0.5,), (3,)))
    other = FlatTensor("o", (2,), np.dtype(np.int8), steps=Quantisation((0.25,), (3,)))
    results = [FlatTensor(name, (2,), np.dtype(np.float32)) for name in "yz"]
    operators = [
        FlatOperator("DEQUANTIZE", (source,), (numbers,)),
        FlatOperator("QUANTIZE", (numbers,), (again,)),
        FlatOperator("QUANTIZE", (numbers,), (other,)),
        FlatOperator("DEQUANTIZE", (again,), (results[0],)),
        FlatOperator("DEQUANTIZE", (other,), (results[1],)),
    ]
    graph = quantised_first(FlatGraph((source,), tuple(results), operators))
    assert graph.count("QUANTIZE") == 1
    assert graph.operators[-2].inputs == (source,)


def test_results_that_are_bytes_have_steps_in_files_of_nothing_but_bytes() -> None:
    source, result = (
        FlatTensor(name, (2,), np.dtype(np.int8), steps=Quantisation((0.5,), (3,))) for name in "ab"
    )
    only_bytes = FlatGraph((source,), (result,), [FlatOperator("ABS", (source,), (result,))])
    assert steps_of(only_bytes) == {"b": 1.0}


def test_weights_keep_a_step_for_each_output() -> None:
    compiled = compile_model(network(np.int8), CompileOptions())
    from ai_edge_litert import schema_py_generated as schema  # noqa: PLC0415 - in an extra

    graph = schema.Model.GetRootAs(compiled.content, 0).Subgraphs(0)
    tensors = [graph.Tensors(index) for index in range(graph.TensorsLength())]
    steps = [tensor.Quantization().ScaleLength() for tensor in tensors if tensor.Quantization()]
    assert steps.count(8) == 2, "the weight and its bias"


def test_a_verdict_in_steps_travels_as_data() -> None:
    verdict = NumericVerdict("equal", within_steps=WithinSteps(0.9995))
    assert NumericVerdict.from_json(verdict.to_json()) == verdict
    assert "up to one step of quantisers on 99.95 %" in verdict.summary()


def _types(compiled: LiteModel, builtin: str) -> list[str]:
    """The types of what the first builtin of a name reads and writes."""
    from ai_edge_litert import schema_py_generated as schema  # noqa: PLC0415 - in an extra

    graph = schema.Model.GetRootAs(compiled.content, 0).Subgraphs(0)
    operator = graph.Operators(builtins_of(compiled).index(builtin))
    names = {number: name for name, number in vars(schema.TensorType).items()}
    touched = [*operator.InputsAsNumpy(), *operator.OutputsAsNumpy()]
    return [names[graph.Tensors(int(index)).Type()] for index in touched]


def test_an_average_over_the_whole_plane_is_a_mean() -> None:
    nodes = [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[6, 7])]
    compiled = assert_runs_alike(model_of(nodes, {"x": (2, 8, 6, 7)}, ["y"]))
    assert "MEAN" in builtins_of(compiled)
