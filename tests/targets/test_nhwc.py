"""Channels last as functions of the domain relayout, and back."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from relayout.api import Result, count, optimize
from relayout.cli import main
from relayout.errors import RelayoutError
from relayout.targets.channels_last import KERNELS, OPERATORS, WEIGHTS
from tests.ops import law
from tests.samples import convolution, movement, normalization, pooling
from tests.samples.sample import Array, Sample, small
from tests.suites.random_graphs import random_graph
from tests.suites.test_random_graphs import SEEDS, assert_same_numbers

DEMANDING = {operator.op_type for operator in OPERATORS}
SAMPLES = [
    sample
    for family in (convolution, movement, normalization, pooling)
    for sample in family.SAMPLES
    if sample.op_type in DEMANDING and not sample.domain
]
RANKS = {operator.op_type: operator.ranks for operator in OPERATORS}
NO_KERNEL = ("axes", "output_shape", "training_mode")
"""Attributes that no kernel has a value for."""

TARGET_OF = {"HWIO": "nhwc", "HWOI": "nhwc-hwoi", "OHWI": "nhwc-ohwi"}
RUNTIMES = ("reference", "ort")
IMAGE = (2, 3, 16, 16)


def _model(
    nodes: list[onnx.NodeProto], weights: dict[str, Array], shape: tuple[int, ...] = IMAGE
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def _residual() -> onnx.ModelProto:
    """A small residual network with everything that a classifier has."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c0", "s", "b", "m", "v"], ["n0"]),
        node("Relu", ["n0"], ["r0"]),
        node("MaxPool", ["r0"], ["p0"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p0", "w1"], ["c1"], pads=[1, 1, 1, 1], group=2),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], auto_pad="SAME_UPPER"),
        node("Add", ["c2", "p0"], ["a"]),
        node("GlobalAveragePool", ["a"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "wg"], ["y"]),
    ]
    shapes = {"w0": (8, 3, 3, 3), "w1": (8, 4, 3, 3), "w2": (8, 8, 1, 1), "wg": (8, 5)}
    vectors = dict.fromkeys(("b0", "s", "b", "m"), (8,))
    weights = {name: small(*shape) for name, shape in {**shapes, **vectors}.items()}
    return _model(nodes, {**weights, "v": np.ones(8, np.float32)})


def _excited() -> onnx.ModelProto:
    """Convolutions of tensors whose spatial axes have length 1."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["g"]),
        helper.make_node("Conv", ["g", "w0"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["x", "s"], ["y"]),
    ]
    return _model(nodes, {"w0": small(3, 3, 1, 1)})


def _converted(model: onnx.ModelProto, target: str = "nhwc") -> Result:
    result = optimize(model, target=target)
    assert result.changed
    assert result.accepted
    return result


def _operators(model: onnx.ModelProto) -> Counter[tuple[str, str]]:
    return Counter((node.domain, node.op_type) for node in model.graph.node)


def _equal(before: onnx.ModelProto, after: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    feeds = {"x": small(*shape)}
    for runtime in RUNTIMES:
        pairs = zip(law.run(before, feeds, runtime), law.run(after, feeds, runtime), strict=True)
        for expected, got in pairs:
            law.compare(runtime, expected, got, 1e-6)


def test_a_residual_network_has_one_transpose_at_its_input() -> None:
    given = _residual()
    result = _converted(given)
    model = result.model
    assert result.after.transposes == 1
    assert model.graph.node[0].op_type == "Transpose"
    assert model.graph.node[0].input == ["x"]
    left = {kind for domain, kind in _operators(model) if not domain}
    assert left == {"Transpose", "Relu", "Add", "Flatten", "Gemm"}
    onnx.checker.check_model(model, full_check=True)
    _equal(given, model, IMAGE)


@pytest.mark.parametrize("make", [_residual, _excited])
@pytest.mark.parametrize("target", ["onnx", "ort"])
def test_the_way_back_is_plain_onnx(make: type, target: str) -> None:
    given = make()
    back = _converted(_converted(given).model, target).model
    assert not back.functions
    assert _operators(back) == _operators(given)
    assert count(back).transposes <= count(given).transposes
    onnx.checker.check_model(back, full_check=True)
    _equal(given, back, IMAGE)


@pytest.mark.parametrize("minimize", ["bytes", "count"])
def test_twice_is_once(minimize: str) -> None:
    once = optimize(_residual(), target="nhwc", minimize=minimize)
    assert once.changed
    assert not optimize(once.model, target="nhwc", minimize=minimize).changed


def test_axes_of_length_one_do_not_hide_a_convolution() -> None:
    model = _converted(_excited()).model
    assert _operators(model)["relayout", "Conv2d"] == 1
    assert _operators(model)["relayout", "GlobalAveragePool2d"] == 1
    _equal(_excited(), model, IMAGE)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_channels(mode: str) -> None:
    nodes = [
        helper.make_node("SpaceToDepth", ["x"], ["s"], blocksize=4),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("DepthToSpace", ["r"], ["y"], blocksize=2, mode=mode),
    ]
    model = _converted(_model(nodes, {})).model
    kinds = [node.op_type for node in model.graph.node]
    assert kinds == ["Transpose", "SpaceToDepth2d", "Relu", "DepthToSpace2d", "Transpose"]
    _equal(_model(nodes, {}), model, IMAGE)


def test_a_weight_of_the_caller_is_transposed() -> None:
    given = _model([helper.make_node("Conv", ["x", "w"], ["y"])], {})
    shape = (4, 3, 3, 3)
    given.graph.input.append(helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, shape))
    model = _converted(onnx.shape_inference.infer_shapes(given)).model
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds == {"Transpose": 3, "Conv2d": 1}


def test_branches_have_kernels_too() -> None:
    branches = [
        helper.make_graph(
            [helper.make_node("Conv", ["x", weight], [f"{weight}_y"])],
            weight,
            [],
            [helper.make_tensor_value_info(f"{weight}_y", onnx.TensorProto.FLOAT, None)],
        )
        for weight in ("w0", "w1")
    ]
    fork = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    weights = {"w0": small(4, 3, 3, 3), "w1": small(4, 3, 3, 3), "c": np.array(True)}
    model = _converted(_model([fork], weights)).model
    assert [function.name for function in model.functions] == ["Conv2d"]
    _equal(_model([fork], weights), model, IMAGE)


def test_a_file_of_an_old_format_can_define_functions() -> None:
    given = _residual()
    given.ir_version = 4
    onnx.checker.check_model(_converted(given).model, full_check=True)


def test_a_function_that_is_not_a_kernel_is_not_taken_for_one() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(_converted(_residual()).model)
    swapped = model.functions[0].node[0].attribute[0].ints
    swapped[:] = [0, 3, 2, 1]
    with pytest.raises(RelayoutError, match="is not the kernel"):
        optimize(model, target="onnx")


def test_a_quantised_weight_is_stored_in_its_order() -> None:
    """Its scales run along the outputs, wherever these are."""
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["w"], axis=0),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    weights: dict[str, Array] = {
        "q": np.arange(4 * 3 * 9, dtype=np.int8).reshape(4, 3, 3, 3),
        "scale": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
        "zero": np.zeros(4, np.int8),
    }
    model = _converted(_model(nodes, weights)).model
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds == {"Transpose": 2, "DequantizeLinear": 1, "Conv2d": 1}
    _equal(_model(nodes, weights), model, IMAGE)


def test_a_quantised_weight_with_an_axis_of_length_one_goes_there_and_back() -> None:
    """It is stored just as the kernel reads it, so that nothing stands in between."""
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"], group=3),
    ]
    weights: dict[str, Array] = {
        "q": np.arange(27, dtype=np.int8).reshape(3, 1, 3, 3),
        "scale": np.asarray(0.1, np.float32),
    }
    there = _converted(_model(nodes, weights)).model
    kinds = Counter(node.op_type for node in there.graph.node)
    assert kinds == {"Transpose": 2, "DequantizeLinear": 1, "Conv2d": 1}
    assert _operators(_converted(there, "onnx").model) == _operators(_model(nodes, weights))


def test_a_kernel_is_worth_the_copy_of_a_large_weight() -> None:
    """The weight of a caller is larger than both images, and is transposed all the same."""
    given = _model([helper.make_node("Conv", ["x", "w"], ["y"])], {}, (1, 64, 3, 3))
    shape = (256, 64, 3, 3)
    given.graph.input.append(helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, shape))
    model = _converted(onnx.shape_inference.infer_shapes(given)).model
    assert _operators(model)["relayout", "Conv2d"] == 1


def test_a_model_without_kernels_is_left_alone() -> None:
    given = _model([helper.make_node("Relu", ["x"], ["y"])], {})
    result = optimize(given, target="nhwc")
    assert not result.changed
    assert result.model == given


def test_the_gain_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """More Transposes than before are accepted where kernels were missing."""
    onnx.save(_residual(), tmp_path / "given.onnx")
    assert main(["optimize", str(tmp_path / "given.onnx"), "--target", "nhwc"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["without", "a", "kernel", "6", "0"] for line in lines)
    assert lines[-1].startswith(
        "6 -> 0 nodes without a kernel, 0 -> 1 Transpose; proved identical; equal"
    )


def test_the_command_line(tmp_path: Path) -> None:
    source, last, back = (tmp_path / f"{name}.onnx" for name in ("given", "last", "back"))
    onnx.save(_residual(), source)
    assert main(["optimize", str(source), "--target", "nhwc", "-o", str(last)]) == 0
    assert main(["optimize", str(last), "--target", "onnx", "-o", str(back)]) == 0
    assert _operators(onnx.load(back)) == _operators(_residual())


@pytest.mark.parametrize(
    ("target", "suffix", "order"),
    [
        ("nhwc", "", (2, 3, 1, 0)),
        ("nhwc-hwoi", "_HWOI", (2, 3, 0, 1)),
        ("nhwc-ohwi", "_OHWI", (0, 2, 3, 1)),
    ],
)
def test_weights_in_the_order_that_the_target_names(
    target: str, suffix: str, order: tuple[int, ...]
) -> None:
    shape = (4, 3, 3, 2)
    given = _model([helper.make_node("Conv", ["x", "w"], ["y"])], {"w": small(*shape)})
    model = _converted(given, target).model
    kinds = [node.op_type for node in model.graph.node]
    assert kinds == ["Transpose", f"Conv2d{suffix}", "Transpose"]
    (weight,) = model.graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(weight), small(*shape).transpose(order))
    _equal(given, model, IMAGE)
    assert _operators(_converted(model, "onnx").model) == _operators(given)


@pytest.mark.parametrize(("before", "after"), list(permutations(WEIGHTS, 2)))
def test_weights_go_from_one_order_straight_to_another(before: str, after: str) -> None:
    """Nothing but the weights is transposed, and those at compile time."""
    given = _residual()
    there = _converted(given, TARGET_OF[before]).model
    other = _converted(there, TARGET_OF[after]).model
    wanted = _converted(given, TARGET_OF[after]).model
    assert _operators(other) == _operators(wanted)
    assert [list(t.dims) for t in other.graph.initializer if len(t.dims) == 4] == [
        list(t.dims) for t in wanted.graph.initializer if len(t.dims) == 4
    ]
    assert {function.name for function in other.functions} == {
        function.name for function in wanted.functions
    }
    onnx.checker.check_model(other, full_check=True)
    _equal(given, other, IMAGE)


def _has_kernel(sample: Sample) -> bool:
    rank = np.ndim(np.asarray(sample.inputs[0]))
    is_strange = any(sample.attributes.get(name) for name in NO_KERNEL)
    if sample.op_type == "Resize":
        crops = sample.version >= 11 and sample.inputs[1] is not None and sample.inputs[1].size
        is_strange |= sample.version < 13 or bool(crops) or sample.attributes.get("mode") != "cubic"
    return rank in RANKS[sample.op_type] and sample.outputs == 1 and not is_strange


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_a_kernel_does_what_its_operator_does(sample: Sample) -> None:
    """Where there is a kernel, its numbers are the operator's; elsewhere the node stays."""
    given = law.model_of(sample)
    feeds = {f"x{i}": x for i, x in enumerate(sample.inputs) if x is not None}
    fed = {name: x for name, x in feeds.items() if int(name[1:]) not in sample.constants}
    before = law.run(given, fed, sample.runtime)
    model = optimize(given, target="nhwc", verify=False).model
    called = [node.op_type for node in model.graph.node if node.domain == "relayout"]
    assert len(called) == _has_kernel(sample)
    assert [function.name for function in model.functions] == called
    assert set(called) <= set(KERNELS)
    after = law.run(model, fed, sample.runtime)
    for expected, got in zip(before, after, strict=True):
        law.compare(sample.id, expected, got, max(sample.tolerance, 1e-6))


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_a_random_graph_goes_there_and_back(seed: int) -> None:
    graph = random_graph(seed)
    there = optimize(graph.model, target="nhwc", verify=False).model
    onnx.checker.check_model(there, full_check=True)
    assert_same_numbers(graph, there)
    back = optimize(there, target="onnx", verify=False).model
    assert not back.functions
    assert_same_numbers(graph, back)
    assert count(back).transposes <= count(graph.model).transposes


@pytest.mark.parametrize("target", TARGET_OF.values())
def test_functions_may_be_written_out_for_runtimes_that_have_none(target: str) -> None:
    weights = {"w": small(8, 3, 3, 3)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[2, 2]),
    ]
    given = _model(nodes, weights)
    result = optimize(given, target=target, inline_functions=True)
    assert result.accepted
    assert not result.model.functions
    assert {opset.domain for opset in result.model.opset_import} == {""}
    assert result.after.transposes == count(result.model).transposes
    with pytest.raises(RelayoutError, match="certificate"):
        optimize(given, target=target, inline_functions=True, certificate="c.json")
