"""Files that are not models, and tensors whose data is not what their dims and type ask for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from relayout.errors import RelayoutError
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from tests.graph.makers import (
    FLOAT,
    model,
    nested_ifs,
    node,
    relu,
    value,
    with_weight,
    write,
)
from tests.graph.refusal import refusal

pytestmark = pytest.mark.usefixtures("no_hang")


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff\x13random bytes",
        b"<!DOCTYPE html><html><body>404</body></html>",
        relu().SerializeToString()[:-20],
    ],
)
def test_bytes_that_are_not_a_model(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert "not an ONNX model" in refusal(path)


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.touch()
    assert "is empty" in refusal(path)


def test_a_message_without_a_graph() -> None:
    assert "no graph" in refusal(onnx.ModelProto(ir_version=8))


def test_a_missing_file_a_folder_and_a_pipe(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "missing.onnx")
    assert "not a plain file" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe.onnx")
    assert "no one writes to" in refusal(tmp_path / "pipe.onnx")


def test_a_file_beyond_the_limit_of_the_format(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)
    assert "2 GiB" in refusal(path)


def test_an_object_that_is_not_a_model() -> None:
    with pytest.raises(RelayoutError, match="not as int"):
        load(3)  # type: ignore[arg-type]  # what a user might do


def test_bodies_nested_too_deep(tmp_path: Path) -> None:
    assert "nested too deep" in refusal(write(nested_ifs(40), tmp_path / "m.onnx"))
    assert "nested more than 32 deep" in refusal(nested_ifs(40))
    assert load(write(nested_ifs(25), tmp_path / "ok.onnx")).frozen is None


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        (TensorProto(name="w", data_type=FLOAT, dims=[2, 3], raw_data=bytes(20)), "20 bytes"),
        (TensorProto(name="w", data_type=FLOAT, dims=[2, 3], raw_data=bytes(28)), "28 bytes"),
        (TensorProto(name="w", data_type=FLOAT, dims=[2, 3]), "0 entries"),
        (TensorProto(name="w", data_type=FLOAT, dims=[2], float_data=[1.0]), "1 entries"),
        (TensorProto(name="w", data_type=FLOAT, dims=[2], int32_data=[1, 2]), "0 entries"),
        (TensorProto(name="w", data_type=FLOAT, dims=[-1, 3]), "negative dim"),
        (TensorProto(name="w", data_type=FLOAT, dims=[2**62, 8]), "claims"),
        (TensorProto(name="w", data_type=FLOAT, dims=[2**32, 2**32], raw_data=b""), "claims"),
        (TensorProto(name="w", data_type=999, dims=[1], raw_data=bytes(4)), "element type 999"),
        (TensorProto(name="w", dims=[1], raw_data=bytes(4)), "no element type"),
    ],
)
def test_tensors_that_are_not_what_they_say(weight: onnx.TensorProto, reason: str) -> None:
    line = refusal(with_weight(weight))
    assert reason in line
    assert "tensor 'w'" in line


@pytest.mark.parametrize(
    "dtype",
    [
        TensorProto.INT4,
        TensorProto.UINT2,
        TensorProto.FLOAT16,
        TensorProto.BFLOAT16,
        TensorProto.FLOAT8E4M3FN,
        TensorProto.COMPLEX64,
        TensorProto.DOUBLE,
        TensorProto.UINT32,
        TensorProto.BOOL,
    ],
)
@pytest.mark.parametrize("raw", [False, True])
def test_odd_sizes_of_every_storage_are_accepted(dtype: int, raw: bool) -> None:
    array = np.asarray([1, 0, 1, 1, 0]).astype(helper.tensor_dtype_to_np_dtype(dtype))
    typed = helper.make_tensor("w", dtype, [5], array)
    weight = onnx.numpy_helper.from_array(array, "w") if raw else typed
    given = model([node("Relu", "x", "y")], initializers=[weight])
    loaded = load(given)
    tensor = loaded.ir.graph.initializers["w"].const_value
    assert tensor is not None
    assert np.array_equal(tensor.numpy(), array)
    assert to_proto(loaded) == given


def test_a_type_no_one_knows_leaves_its_value_alone() -> None:
    given = relu()
    given.graph.input[0].type.tensor_type.elem_type = 999
    loaded = load(given)
    assert loaded.ir.graph.inputs[0].type is None
    assert to_proto(loaded) == given


def test_bombs_are_not_expanded() -> None:
    size = helper.make_tensor("n", TensorProto.INT64, [2], [2**30, 2**30])
    nodes = [node("ConstantOfShape", "n", "a"), node("Expand", "x n", "b"), node("Add", "a b", "y")]
    loaded = load(model(nodes, inputs=[value("x", [1, 1])], initializers=[size]))
    assert loaded.ir.graph.outputs[0].shape == [2**30, 2**30]


def test_a_sparse_initialiser_is_kept_and_never_made_dense() -> None:
    given = model([node("Add", "x s", "y")], inputs=[value("x", [1])])
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", FLOAT, [1], [5.0]),
        helper.make_tensor("", TensorProto.INT64, [1], [4]),
        [2**20, 2**20],
    )
    given.graph.sparse_initializer.append(sparse)
    loaded = load(given)
    operand = loaded.ir.graph.node(1).inputs[1]
    assert operand is not None
    assert operand.shape == [2**20, 2**20]
    assert to_proto(loaded) == given
