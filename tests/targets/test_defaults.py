"""Weights that a caller may replace: they stay as they are, or become constants when asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from relayout.api import Result, check_certificate, optimize
from relayout.cli import main
from relayout.optimizer.compare import compare_strategies
from tests.ops import law
from tests.samples.sample import Array, small

IMAGE = (2, 3, 8, 8)
WEIGHTS: dict[str, Array] = {
    "w0": small(4, 3, 3, 3),
    "b0": small(4),
    "s": small(4),
    "v": np.ones(4, np.float32),
    "w1": small(5, 4, 1, 1),
}
NODES = [
    helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], name="first"),
    helper.make_node("BatchNormalization", ["c0", "s", "s", "s", "v"], ["n0"], name="normal"),
    helper.make_node("Relu", ["n0"], ["r0"]),
    helper.make_node("Conv", ["r0", "w1"], ["y"], name="second"),
]
HELD = "operators stay channels first, since a caller may replace parameters"


def network(
    nodes: list[onnx.NodeProto] = NODES,
    weights: dict[str, Array] = WEIGHTS,
    *,
    listed: bool = True,
    ir_version: int = 10,
) -> onnx.ModelProto:
    """A network whose weights are listed among its inputs or not."""
    image = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, IMAGE)
    defaults = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in weights.items()
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [image, *(defaults if listed else [])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["A", "B", "C", "D"])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opset = helper.make_opsetid("", 8 if ir_version < 4 else 21)
    return helper.make_model(graph, opset_imports=[opset], ir_version=ir_version)


def channels_last(model: onnx.ModelProto, *, fix_defaults: bool = False) -> Result:
    return optimize(model, target="nhwc", fix_defaults=fix_defaults)


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def names(model: onnx.ModelProto) -> list[str]:
    return [value.name for value in model.graph.input]


def test_weights_that_may_be_replaced_are_not_transposed_at_every_run() -> None:
    given = network()
    result = channels_last(given)
    assert not result.changed
    assert result.model == given
    (notice,) = result.record().notices
    assert notice.startswith(f"3 {HELD}; --fix-defaults")


def test_when_asked_they_are_constants_and_all_kernels_are_there() -> None:
    result = channels_last(network(), fix_defaults=True)
    model = result.model
    assert kinds(model) == [
        *("Transpose", "Conv2d_B", "BatchNormalization2d", "Relu", "Conv2d", "Transpose")
    ]
    assert names(model) == ["x"]
    (notice,) = result.record().notices
    assert notice == "5 inputs with defaults are constants now, which no caller can replace"
    onnx.checker.check_model(model, full_check=True)
    for runtime in ("ort", "reference"):
        feeds = {"x": small(*IMAGE)}
        (wanted,) = law.run(network(), feeds, runtime)
        (found,) = law.run(model, feeds, runtime)
        law.compare(runtime, wanted, found, 1e-6)


def test_the_result_is_the_one_of_a_model_that_never_listed_them() -> None:
    listed = channels_last(network(), fix_defaults=True).model
    never = channels_last(network(listed=False)).model
    assert listed == never


def _with_pools() -> list[onnx.NodeProto]:
    return [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Conv", ["p", "w0"], ["c"]),
        helper.make_node("AveragePool", ["c"], ["y"], kernel_shape=[2, 2]),
    ]


@pytest.mark.parametrize("runtime", ["ort", "reference"])
def test_what_has_no_weights_is_transposed_and_the_caller_still_replaces_the_others(
    runtime: str,
) -> None:
    given = network(_with_pools(), {"w0": WEIGHTS["w0"]})
    result = channels_last(given)
    model = result.model
    assert kinds(model).count("Conv") == 1
    assert {"MaxPool2d", "AveragePool2d"} <= set(kinds(model))
    assert names(model) == ["x", "w0"]
    assert not [
        node for node in model.graph.node if node.op_type == "Transpose" and "w0" in node.input
    ]
    for weight in (WEIGHTS["w0"], WEIGHTS["w0"] * 2 + 1):
        feeds = {"x": small(*IMAGE), "w0": weight}
        (wanted,) = law.run(given, feeds, runtime)
        (found,) = law.run(model, feeds, runtime)
        law.compare(runtime, wanted, found, 1e-6)
    onnx.checker.check_model(model, full_check=True)


def test_a_weight_dequantised_from_a_default_is_one() -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    weights: dict[str, Array] = {
        "q": np.arange(27, dtype=np.int8).reshape(1, 3, 3, 3),
        "scale": np.asarray(0.5, np.float32),
    }
    given = network(nodes, weights)
    assert channels_last(given).model == given
    assert "Conv2d" in kinds(channels_last(given, fix_defaults=True).model)


def test_a_kernel_with_such_a_weight_stays_in_its_order() -> None:
    model = channels_last(network(listed=False)).model
    for initializer in model.graph.initializer:
        model.graph.input.append(
            helper.make_tensor_value_info(initializer.name, initializer.data_type, initializer.dims)
        )
    other = optimize(model, target="nhwc-ohwi")
    assert not other.changed
    assert "Conv2d_OHWI" in kinds(optimize(model, target="nhwc-ohwi", fix_defaults=True).model)
    assert "Conv" in kinds(optimize(model, target="onnx").model)


@pytest.mark.parametrize("ir_version", [3, 4])
def test_an_old_format_lists_what_some_runtimes_let_a_caller_replace(ir_version: int) -> None:
    """In version 3 everything had to be listed, so it is not known which of it is constant."""
    given = network(NODES[:1], {"w0": WEIGHTS["w0"], "b0": WEIGHTS["b0"]}, ir_version=ir_version)
    given.graph.node[0].output[0] = "y"
    assert channels_last(given).model == given
    model = channels_last(given, fix_defaults=True).model
    assert kinds(model) == ["Transpose", "Conv2d_B", "Transpose"]
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("given_as", ["message", "file"])
def test_the_interface_is_the_one_asked_for_even_if_nothing_else_changes(
    given_as: str, tmp_path: Path
) -> None:
    given = network()
    source: onnx.ModelProto | Path = given
    if given_as == "file":
        source = tmp_path / "given.onnx"
        onnx.save(given, source)
    result = optimize(source, tmp_path / "out.onnx", fix_defaults=True)
    written = onnx.load(tmp_path / "out.onnx")
    assert result.accepted
    assert result.verdict is not None
    assert result.verdict.exact
    assert names(written) == ["x"]
    assert list(written.graph.node) == list(given.graph.node)


def test_a_certificate_states_that_defaults_were_fixed() -> None:
    given = network()
    result = channels_last(given, fix_defaults=True)
    document = result.certificate()
    assert check_certificate(document, given) == []
    document["settings"]["fix_defaults"] = False
    assert check_certificate(document, given) != []


def test_all_strategies_are_compared_on_the_fixed_model() -> None:
    fixed = compare_strategies(network(), target="nhwc", fix_defaults=True, verify=False)
    left = {record.name: record.left.transposes for record in fixed.strategies}
    assert left["exact"] == 2
    as_given = compare_strategies(network(), target="nhwc", verify=False)
    assert {record.left.transposes for record in as_given.strategies} == {0}


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "given.onnx", tmp_path / "out.onnx"
    onnx.save(network(), source)
    arguments = ["optimize", str(source), "--target", "nhwc", "-o", str(output)]
    assert main(arguments) == 0
    assert output.read_bytes() == source.read_bytes()
    assert HELD in capsys.readouterr().out.replace("\n", " ")
    assert main([*arguments, "--fix-defaults"]) == 0
    assert "5 inputs with defaults are constants now" in capsys.readouterr().out
    assert names(onnx.load(output)) == ["x"]
    assert main(["compare", str(source), "--target", "nhwc", "--fix-defaults"]) == 0
