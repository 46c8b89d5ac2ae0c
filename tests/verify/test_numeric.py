"""Equal models are found equal, and each kind of difference is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from relayout.verify.numeric import compare
from relayout.verify.verdict import NumericOptions
from tests.verify.models import constant, node, one_node, plus, save, tensor

INT64 = TensorProto.INT64


def transposed_relu(path: Path, back: tuple[int, ...], shape: tuple[int, ...]) -> Path:
    """Relu between two Transposes, of which the second one goes back only for the right `back`."""
    nodes = [
        node("Transpose", ["x"], ["a"], perm=[0, 2, 3, 1]),
        node("Relu", ["a"], ["b"]),
        node("Transpose", ["b"], ["y"], perm=back),
    ]
    return save(path, nodes, [tensor("x", shape)], [tensor("y", shape)])


def test_a_moved_transpose_is_exact(tmp_path: Path) -> None:
    before = transposed_relu(tmp_path / "a.onnx", (0, 3, 1, 2), (2, 3, 4, 5))
    after = one_node(tmp_path / "b.onnx", "Relu", (2, 3, 4, 5))
    verdict = compare(before, after)
    assert verdict.equal
    assert verdict.exact
    assert verdict.elements == 2 * 120
    assert verdict.summary() == "equal: 1 output, 1 shape, 2 runs, exact"


def test_swapped_axes_of_equal_size_are_found(tmp_path: Path) -> None:
    before = one_node(tmp_path / "a.onnx", "Relu", (1, 3, 4, 4))
    after = transposed_relu(tmp_path / "b.onnx", (0, 3, 2, 1), (1, 3, 4, 4))
    verdict = compare(before, after)
    assert verdict.status == "differs"
    assert verdict.worst is not None
    assert verdict.worst.output == "y"


def test_one_wrong_element_is_found_and_located(tmp_path: Path) -> None:
    offset = np.zeros((2, 3), np.float32)
    wrong = offset.copy()
    wrong[1, 2] = 1.0
    verdict = compare(plus(tmp_path / "a.onnx", offset), plus(tmp_path / "b.onnx", wrong))
    assert verdict.status == "differs"
    assert verdict.worst is not None
    assert verdict.worst.index == (1, 2)
    assert float(verdict.worst.after) - float(verdict.worst.before) == pytest.approx(1.0)
    assert "output 'y' at [1,2]" in verdict.summary()


@pytest.mark.parametrize(("scale", "equal"), [(1e-6, True), (1e-3, False)])
def test_the_tolerance_is_relative_to_the_scale(tmp_path: Path, scale: float, equal: bool) -> None:
    before = plus(tmp_path / "a.onnx", 1000.0)
    after = plus(tmp_path / "b.onnx", 1000.0 * (1 + scale))
    verdict = compare(before, after)
    assert verdict.equal is equal
    assert not verdict.exact
    assert verdict.worst is not None
    assert verdict.worst.error == pytest.approx(scale, rel=0.1)


def test_it_passes_at_the_tolerance_it_names(tmp_path: Path) -> None:
    before, after = plus(tmp_path / "a.onnx", 1.0), plus(tmp_path / "b.onnx", 1.01)
    worst = compare(before, after).worst
    assert worst is not None
    assert worst.passes_at is not None
    assert compare(before, after, NumericOptions(tolerance=worst.passes_at)).equal
    assert not compare(before, after, NumericOptions(tolerance=worst.passes_at * 0.8)).equal


def test_whole_numbers_differ_by_one(tmp_path: Path) -> None:
    def model(path: Path, offset: int) -> Path:
        return save(
            path,
            [node("Add", ["x", "b"], ["y"])],
            [tensor("x", (3,), INT64)],
            [tensor("y", (3,), INT64)],
            [constant("b", 10**9 + offset, np.int64)],
        )

    verdict = compare(model(tmp_path / "a.onnx", 0), model(tmp_path / "b.onnx", 1))
    assert verdict.status == "differs"
    assert verdict.worst is not None
    assert verdict.worst.error is None
    assert compare(tmp_path / "a.onnx", tmp_path / "a.onnx").exact


def test_nan_meets_only_nan(tmp_path: Path) -> None:
    before = plus(tmp_path / "a.onnx", [0.0, np.nan, np.inf])
    assert compare(before, plus(tmp_path / "same.onnx", [0.0, np.nan, np.inf])).exact
    for other in ([0.0, 1.0, np.inf], [np.nan, np.nan, np.inf], [0.0, np.nan, -np.inf]):
        verdict = compare(before, plus(tmp_path / "b.onnx", other))
        assert verdict.status == "differs"
        assert verdict.worst is not None
        assert verdict.worst.error is None


def test_strings_are_compared(tmp_path: Path) -> None:
    def model(path: Path, op_type: str, axis: int) -> Path:
        made = node(op_type, ["x", "x"], ["y"], axis=axis)
        shape = (4, 2) if axis == 0 else (2, 4)
        string = TensorProto.STRING
        return save(path, [made], [tensor("x", (2, 2), string)], [tensor("y", shape, string)])

    before = model(tmp_path / "a.onnx", "Concat", 0)
    assert compare(before, before).exact
    gather = save(
        tmp_path / "b.onnx",
        [node("Gather", ["x", "i"], ["y"], axis=0)],
        [tensor("x", (2, 2), TensorProto.STRING)],
        [tensor("y", (4, 2), TensorProto.STRING)],
        [constant("i", [0, 1, 1, 0], np.int64)],
    )
    assert compare(before, gather).status == "differs"


def test_an_output_of_another_shape_differs(tmp_path: Path) -> None:
    before = one_node(tmp_path / "a.onnx", "Relu", ("N", "M"))
    after = one_node(tmp_path / "b.onnx", "Transpose", ("N", "M"), perm=[1, 0])
    verdict = compare(before, after)
    assert "shape [2, 3] became shape [3, 2]" in verdict.summary()
    assert "N=2" in verdict.summary()


def test_random_outputs_are_compared_by_shape_alone(tmp_path: Path) -> None:
    def model(path: Path, op_type: str, wide: int, mean: float = 0.0) -> Path:
        nodes = [
            node("RandomNormal", [], ["r"], shape=[2, wide], mean=mean),
            node(op_type, ["x"], ["z"]),
        ]
        return save(path, nodes, [tensor("x", (2,))], [tensor("r", ("a", "b")), tensor("z", (2,))])

    before = model(tmp_path / "a.onnx", "Relu", 3)
    assert compare(before, before).equal
    verdict = compare(before, model(tmp_path / "other.onnx", "Relu", 3, mean=5.0))
    assert verdict.equal
    assert verdict.unstable == ("r",)
    assert "1 not deterministic" in verdict.summary()
    assert compare(before, model(tmp_path / "b.onnx", "Relu", 4)).status == "differs"
    assert compare(before, model(tmp_path / "c.onnx", "Neg", 3)).status == "differs"


def test_a_default_value_is_both_left_and_overridden(tmp_path: Path) -> None:
    def model(path: Path, *, folded: bool) -> Path:
        inputs = [tensor("x", (2, 3)), tensor("w", (3,))]
        constants = [constant("w", [1, 2, 3]), constant("c", [1, 2, 3])]
        product = node("Mul", ["x", "c" if folded else "w"], ["y"])
        return save(path, [product], inputs, [tensor("y", (2, 3))], constants)

    before = model(tmp_path / "a.onnx", folded=False)
    assert compare(before, before).exact
    verdict = compare(before, model(tmp_path / "b.onnx", folded=True))
    assert verdict.status == "differs"
    assert verdict.worst is not None
    assert verdict.worst.draw == "normal"


def test_sequences_are_fed_and_compared(tmp_path: Path) -> None:
    def model(path: Path, op_type: str) -> Path:
        element = helper.make_tensor_type_proto(TensorProto.FLOAT, (2, 3))
        sequence = helper.make_sequence_type_proto(element)
        nodes = [
            node("SequenceAt", ["s", "zero"], ["a"]),
            node(op_type, ["a"], ["b"]),
            node("SequenceInsert", ["s", "b"], ["t"]),
        ]
        given = helper.make_value_info("s", sequence)
        made = helper.make_value_info("t", helper.make_sequence_type_proto(element))
        return save(path, nodes, [given], [made], [constant("zero", 0, np.int64)])

    before = model(tmp_path / "a.onnx", "Relu")
    assert compare(before, before).exact
    verdict = compare(before, model(tmp_path / "b.onnx", "Neg"))
    assert verdict.worst is not None
    assert verdict.worst.output == "t[1]"


def test_optional_values_are_fed(tmp_path: Path) -> None:
    def model(path: Path, op_type: str) -> Path:
        element = helper.make_tensor_type_proto(TensorProto.FLOAT, (2, 3))
        given = helper.make_value_info("o", helper.make_optional_type_proto(element))
        nodes = [node("OptionalGetElement", ["o"], ["a"]), node(op_type, ["a"], ["y"])]
        return save(path, nodes, [given], [tensor("y", (2, 3))])

    before = model(tmp_path / "a.onnx", "Relu")
    assert compare(before, before).exact
    assert compare(before, model(tmp_path / "b.onnx", "Neg")).status == "differs"


@pytest.mark.parametrize("element", [TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16])
def test_floats_of_other_widths(tmp_path: Path, element: int) -> None:
    def model(path: Path, perm: list[int]) -> Path:
        made = node("Transpose", ["x"], ["y"], perm=perm)
        return save(path, [made], [tensor("x", (4, 4), element)], [tensor("y", (4, 4), element)])

    before = model(tmp_path / "a.onnx", [1, 0])
    assert compare(before, before).exact
    assert compare(before, model(tmp_path / "b.onnx", [0, 1])).status == "differs"


@pytest.mark.parametrize("element", [TensorProto.INT4, TensorProto.FLOAT8E4M3FN])
def test_types_of_few_bits(tmp_path: Path, element: int) -> None:
    made = node("Reshape", ["x", "s"], ["y"])
    before = save(
        tmp_path / "a.onnx",
        [made],
        [tensor("x", (2, 3), element)],
        [tensor("y", (3, 2), element)],
        [constant("s", [3, 2], np.int64)],
        opset=21,
        ir_version=10,
    )
    assert compare(before, before).exact


def test_outputs_the_inputs_do_not_change_are_reported(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Shape", ["x"], ["s"])]
    outputs = [tensor("y", (2, "N")), tensor("s", (2,), INT64)]
    path = save(tmp_path / "a.onnx", nodes, [tensor("x", (2, "N"))], outputs)
    verdict = compare(path, path)
    assert verdict.steady == ("s",)
    assert verdict.summary().endswith("1 alike for all inputs, exact")


def test_a_model_without_inputs_is_run_once(tmp_path: Path) -> None:
    def model(path: Path, value: float) -> Path:
        made = [node("Relu", ["c"], ["y"])]
        return save(path, made, [], [tensor("y", (2,))], [constant("c", [1, value])])

    before = model(tmp_path / "a.onnx", 2)
    assert compare(before, before).runs == 1
    assert compare(before, model(tmp_path / "b.onnx", 3)).status == "differs"
