"""From a model to a .tflite file: names, lengths, layouts, verification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import relayout
from relayout.backends.litert.compiling import compile_model, write_module
from relayout.backends.litert.interpreting import LiteModel
from relayout.backends.options import CompileOptions
from relayout.cli import main
from relayout.cli.demo_model import network as demo_network
from relayout.errors import RelayoutError
from relayout.verify.verdict import NumericOptions
from tests.backends.litert.building import (
    assert_runs_alike,
    builtins_of,
    drawn,
    expected,
    feeds_of,
    model_of,
)


def network() -> onnx.ModelProto:
    """A convolution, a normalisation and an activation, twice, and a classifier."""
    nodes = []
    held = {"matrix": drawn(6, 5), "axes": np.asarray([2, 3]), "bias": drawn(5)}
    before = "picture"
    for layer, channels in enumerate((3, 6)):
        held[f"w{layer}"] = drawn(6, channels, 3, 3)
        held |= {f"{name}{layer}": drawn(6, seed=layer) for name in ("scale", "shift", "mean")}
        held[f"variance{layer}"] = np.abs(drawn(6)) + 1
        statistics = [f"{name}{layer}" for name in ("scale", "shift", "mean", "variance")]
        nodes += [
            helper.make_node("Conv", [before, f"w{layer}"], [f"c{layer}"], pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", [f"c{layer}", *statistics], [f"n{layer}"]),
            helper.make_node("Relu", [f"n{layer}"], [f"r{layer}"]),
        ]
        before = f"r{layer}"
    nodes += [
        helper.make_node("ReduceMean", [before, "axes"], ["pooled"], keepdims=0),
        helper.make_node("MatMul", ["pooled", "matrix"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["scores"]),
    ]
    return model_of(nodes, {"picture": (1, 3, 8, 8)}, ["scores"], held)


def test_factors_biases_and_activations_are_part_of_layers() -> None:
    builtins = builtins_of(assert_runs_alike(network()))
    assert builtins == ["TRANSPOSE", "CONV_2D", "CONV_2D", "MEAN", "FULLY_CONNECTED"]


def test_the_command_writes_a_file_that_was_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "m.onnx", tmp_path / "m.tflite"
    onnx.save(network(), source)
    assert main(["compile", str(source), "--target", "litert", "-o", str(output), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verified"]
    assert record["details"]["TRANSPOSE"] == 1
    assert record["details"]["XNNPACK partitions"] == 1
    model = LiteModel(output)
    assert (model.inputs, model.outputs) == (["picture"], ["scores"])
    feeds = feeds_of(network())
    wanted = expected(network(), feeds)[0]
    np.testing.assert_allclose(model(feeds)["scores"], wanted, rtol=1e-4, atol=1e-4)


def test_a_model_of_open_lengths_is_run_at_those_that_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(demo_network(), source)
    assert main(["run", str(source), "--backend", "litert", "--dim", "N=2"]) == 0
    assert "scores: float32 [2, 10]" in capsys.readouterr().out


def test_the_same_model_gives_the_same_bytes() -> None:
    first, second = (compile_model(network(), CompileOptions()).content for _ in range(2))
    assert first == second


def test_from_python_a_model_is_a_callable() -> None:
    model = relayout.compile(network(), target="litert")
    feeds = feeds_of(network())
    by_name, in_order = model(**feeds), model(*feeds.values())
    np.testing.assert_array_equal(by_name["scores"], in_order["scores"])
    with pytest.raises(RelayoutError, match="lacks"):
        model()


def test_an_open_length_may_be_given(tmp_path: Path) -> None:
    model = network()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    source = tmp_path / "m.onnx"
    onnx.save(model, source)
    numbers = NumericOptions(dims={"batch": 2})
    options = CompileOptions(dims={"batch": 2}, inputs=numbers)
    done = write_module(source, tmp_path / "m.tflite", options)
    assert done.accepted
    assert LiteModel(tmp_path / "m.tflite")(drawn(2, 3, 8, 8))["scores"].shape == (2, 5)


def test_a_file_that_computes_something_else_is_not_written(tmp_path: Path) -> None:
    """Doubles are computed in floats, which shows."""
    wide = helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, [2, 3])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, [2, 3])
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "wide", [wide], [result])
    source, output = tmp_path / "m.onnx", tmp_path / "m.tflite"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), source)
    done = write_module(source, output, CompileOptions(inputs=NumericOptions()))
    assert not done.accepted
    assert not output.exists()


def test_weights_may_be_stored_in_half_precision(tmp_path: Path) -> None:
    whole = compile_model(network(), CompileOptions())
    half = compile_model(network(), CompileOptions(dtype="float16", inputs=NumericOptions()))
    assert len(half.content) < len(whole.content)
    feeds = feeds_of(network())
    np.testing.assert_allclose(half(feeds)["scores"], whole(feeds)["scores"], rtol=2e-2, atol=2e-2)


def test_an_output_may_be_an_input_or_a_constant() -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["z"])]
    assert_runs_alike(model_of(nodes, {"x": (2, 3)}, ["y", "z"]))


def test_the_transpose_of_a_product_with_a_weight_is_part_of_it() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum"]),
        helper.make_node("Transpose", ["sum"], ["y"], perm=[0, 3, 1, 2]),
    ]
    held = {"w": drawn(5, 6), "bias": drawn(6)}
    builtins = builtins_of(assert_runs_alike(model_of(nodes, {"x": (1, 2, 3, 5)}, ["y"], held)))
    assert "TRANSPOSE" not in builtins


def test_a_window_attention_is_partitioned_and_split_by_one_transpose() -> None:
    """Windows, heads and the three factors of an attention, seven axes, in moves of six."""
    shapes = {
        "windows": [2, 3, 2, 3, 4],
        "tokens": [4, 9, 4],
        "parts": [4, 9, 3, 2, 4],
    }
    held: dict[str, Any] = {name: np.asarray(each) for name, each in shapes.items()}
    held |= {"w": drawn(4, 24), "zero": np.asarray(0)}
    nodes = [
        helper.make_node("Reshape", ["x", "windows"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["b", "tokens"], ["c"]),
        helper.make_node("MatMul", ["c", "w"], ["d"]),
        helper.make_node("Reshape", ["d", "parts"], ["e"]),
        helper.make_node("Transpose", ["e"], ["f"], perm=[2, 0, 3, 1, 4]),
        helper.make_node("Gather", ["f", "zero"], ["y"], axis=0),
    ]
    builtins = builtins_of(assert_runs_alike(model_of(nodes, {"x": (6, 6, 4)}, ["y"], held)))
    assert builtins.count("TRANSPOSE") == 1
