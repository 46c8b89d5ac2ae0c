"""Inputs with defaults become constants when asked, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from relayout.api import optimize
from relayout.graph.io.defaults import defaults_of, without_defaults
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.graph.read import Shape, shape_of
from tests.graph.makers import model, node, value

SHAPE = numpy_helper.from_array(np.asarray([3, 2]), "s")


def _vector(name: str, length: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [length])


def reshaped(ir_version: int = 8) -> onnx.ModelProto:
    return model(
        [node("Reshape", "x s", "a"), node("Relu", "a", "y")],
        inputs=[value("x", [2, 3]), _vector("s", 2)],
        outputs=[value("y", ["A", "B"])],
        initializers=[SHAPE],
        ir_version=ir_version,
        opsets=[("", 8)],
    )


def test_the_input_goes_and_its_tensor_stays() -> None:
    given = reshaped()
    fixed = without_defaults(load(given))
    message = to_proto(fixed)
    assert [each.name for each in message.graph.input] == ["x"]
    assert list(message.graph.initializer) == list(given.graph.initializer)
    assert list(message.graph.node) == list(given.graph.node)
    assert message.ir_version == 8
    assert fixed.notices == ["input 's' is a constant now, which no caller can replace"]
    assert defaults_of(given) == ["s"]


def test_shapes_follow_from_what_is_constant_now() -> None:
    loaded = load(reshaped())
    assert _shape_of_first(loaded) == (None, None)
    assert _shape_of_first(without_defaults(loaded)) == (3, 2)


def _shape_of_first(loaded: LoadedModel) -> Shape | None:
    return shape_of(loaded.ir.graph.node(0).outputs[0])


def test_a_model_without_defaults_is_the_same() -> None:
    loaded = load(model([node("Relu", "x", "y")]))
    assert without_defaults(loaded) is loaded


def test_an_old_format_has_constants_only_as_inputs() -> None:
    message = to_proto(without_defaults(load(reshaped(ir_version=3))))
    assert message.ir_version == 4
    onnx.checker.check_model(message, full_check=True)


def test_sparse_tensors_are_defaults_too() -> None:
    given = model([node("Add", "x w", "y")], inputs=[value("x", [4]), value("w", [4])])
    values = numpy_helper.from_array(np.asarray([2.0], np.float32), "w")
    indices = numpy_helper.from_array(np.asarray([1], np.int64))
    given.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    message = to_proto(without_defaults(load(given)))
    assert [each.name for each in message.graph.input] == ["x"]
    assert message.graph.sparse_initializer == given.graph.sparse_initializer


@pytest.mark.parametrize("count", [2, 3])
def test_many_are_counted(count: int) -> None:
    names = [f"w{number}" for number in range(count)]
    weights = [numpy_helper.from_array(np.ones((2, 3), np.float32), name) for name in names]
    given = model(
        [node("Sum", " ".join(("x", *names)), "y")],
        inputs=[value(name, [2, 3]) for name in ("x", *names)],
        initializers=weights,
    )
    (notice,) = without_defaults(load(given)).notices
    assert notice.startswith(f"{count} inputs with defaults are constants now")


def test_data_in_files_stays_there(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    given = model(
        [node("Add", "x w", "y")],
        inputs=[value("x", [2, 3]), value("w", [2, 3])],
        initializers=[weight],
    )
    path = tmp_path / "m.onnx"
    onnx.save(given, path, save_as_external_data=True, location="w.data", size_threshold=0)
    fixed = without_defaults(load(path))
    assert fixed.path == path
    (initializer,) = to_proto(fixed).graph.initializer
    assert initializer.external_data[0].value == "w.data"
    (operand,) = [v for v in fixed.ir.graph.initializers.values() if v.const_value is not None]
    assert operand.const_value is not None
    np.testing.assert_array_equal(operand.const_value.numpy(), np.ones((2, 3)))


def test_a_new_constant_raises_an_old_format() -> None:
    """Its constants are all listed among the inputs, and nothing may be added there."""
    weight = numpy_helper.from_array(np.ones(3, np.float32), "b")
    wrapped = [
        node("Transpose", "x", "a", perm=[0, 2, 3, 1]),
        node("Reshape", "a s", "c"),
        node("Add", "c b", "d"),
        node("Transpose", "d", "y", perm=[0, 2, 1]),
    ]
    target = numpy_helper.from_array(np.asarray([2, 20, 3]), "s")
    given = model(
        wrapped,
        inputs=[value("x", [2, 3, 4, 5]), value("b", [3]), _vector("s", 3)],
        outputs=[value("y", [2, 3, 20])],
        initializers=[weight, target],
        ir_version=3,
        opsets=[("", 8)],
    )
    onnx.checker.check_model(given, full_check=True)
    result = optimize(given)
    assert result.after.transposes == 0
    assert list(result.model.graph.input) == list(given.graph.input)
    assert result.model.ir_version == 4
    onnx.checker.check_model(result.model, full_check=True)
