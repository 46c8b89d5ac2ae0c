"""Quantised networks that end in floats are compared where their bytes end, and from there on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from relayout.backends.litert.compiling import write_module
from relayout.backends.litert.last_bytes import FloatTail, LastBytes
from relayout.backends.litert.verification import compare_file
from relayout.backends.options import CompileOptions
from relayout.verify.interface import interface_of
from relayout.verify.verdict import NumericOptions
from tests.backends.litert.test_quantised import network

NORM = [
    helper.make_node("ReduceL2", ["s_d", "axes"], ["norm"], keepdims=1),
    helper.make_node("Div", ["s_d", "norm"], ["y"]),
]
TANH = [helper.make_node("Mul", ["s_d", "three"], ["m"]), helper.make_node("Tanh", ["m"], ["y"])]
HELD = {"axes": np.array([1], np.int64), "three": np.float32(3)}


def ending(path: Path, kind: Any, nodes: list[onnx.NodeProto], **held: Any) -> Path:
    """A network on bytes, and what makes floats of its last ones."""
    model = network(kind)
    model.graph.node.extend(nodes)
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name="y"))
    constants = (HELD | held).items()
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in constants)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def written(given: Path) -> Path:
    output = given.with_suffix(".tflite")
    write_module(str(given), str(output), CompileOptions())
    return output


@pytest.mark.parametrize("nodes", [NORM, TANH], ids=["norm", "tanh"])
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_a_step_at_the_last_bytes_is_no_error(
    tmp_path: Path, kind: Any, nodes: list[onnx.NodeProto]
) -> None:
    given, output = ending(tmp_path / "in.onnx", kind, nodes), tmp_path / "out.tflite"
    made = write_module(str(given), str(output), CompileOptions(inputs=NumericOptions()))
    assert made.verdict is not None
    assert made.verdict.equal
    # What ONNX Runtime computes on bytes may be the same throughout.
    steps = made.verdict.within_steps
    assert steps is None or steps.share >= 0.999
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.onnx", "out.tflite"]
    # Otherwise the outputs themselves are further apart than rounding explains.
    alone = compare_file(given, output, NumericOptions(), fixed=True, steps={"y": 0.0})
    assert alone.equal == (steps is None)


def test_floats_that_are_wrong_are_found(tmp_path: Path) -> None:
    """Two files whose bytes are the same, and whose results are not."""
    given = ending(tmp_path / "in.onnx", np.int8, TANH)
    other = ending(tmp_path / "other.onnx", np.int8, TANH, three=np.float32(3.01))
    last = LastBytes(written(with_last(other)), {"s_d": 0.09})
    verdict = compare_file(
        *(given, written(other), NumericOptions()), fixed=True, steps={"y": 0.0}, last=last
    )
    assert verdict.status == "differs"
    assert "lie within a step" in verdict.not_rounding


def test_what_gives_the_last_bytes_has_to_be_what_is_delivered(tmp_path: Path) -> None:
    given = ending(tmp_path / "in.onnx", np.int8, TANH)
    other = ending(tmp_path / "other.onnx", np.int8, TANH, three=np.float32(3.01))
    last = LastBytes(written(with_last(given)), {"s_d": 0.09})
    verdict = compare_file(
        *(given, written(other), NumericOptions()), fixed=True, steps={"y": 0.0}, last=last
    )
    assert verdict.status == "differs"


def test_names_that_the_given_model_lacks_show_nothing(tmp_path: Path) -> None:
    given = ending(tmp_path / "in.onnx", np.int8, TANH)
    assert FloatTail.of(given, ["s_d_0231"], interface_of(given)) is None


def with_last(path: Path) -> Path:
    """The model, which also gives its last bytes as floats."""
    model = onnx.load(path)
    model.graph.output.append(onnx.ValueInfoProto(name="s_d"))
    onnx.save(onnx.shape_inference.infer_shapes(model), path.with_stem(f"{path.stem}_last"))
    return path.with_stem(f"{path.stem}_last")
