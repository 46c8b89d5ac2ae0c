"""Data of a message is copied out of it once for all who hold it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper

from relayout.graph.io.shared_tensor import SharedTensor

NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_who_holds_a_view_shares_the_data_with_who_asks_later() -> None:
    tensor = SharedTensor(numpy_helper.from_array(NUMBERS, "w"))
    held = tensor.numpy().T.reshape(3, 2, 1)
    again = tensor.numpy()
    assert np.shares_memory(held, again)
    np.testing.assert_array_equal(again, NUMBERS)


def test_data_that_nobody_holds_is_not_kept() -> None:
    tensor = SharedTensor(numpy_helper.from_array(NUMBERS, "w"))
    first = tensor.numpy().copy()
    assert tensor._data is not None
    assert tensor._data() is None
    np.testing.assert_array_equal(tensor.numpy(), first)


@pytest.mark.parametrize(
    "message",
    [
        onnx.helper.make_tensor("w", TensorProto.FLOAT, [2, 3], NUMBERS.ravel()),
        onnx.helper.make_tensor("w", TensorProto.INT8, [3], [1, -2, 3]),
        onnx.helper.make_tensor("w", TensorProto.INT4, [3], [1, -2, 3]),
        onnx.helper.make_tensor("w", TensorProto.FLOAT, [], [1.5], raw=False),
        numpy_helper.from_array(np.zeros((0, 4), np.float32), "w"),
        numpy_helper.from_array(NUMBERS.astype(ml_dtypes.bfloat16), "w"),
    ],
    ids=["numbers", "integers", "packed", "scalar", "empty", "bfloat16"],
)
def test_data_in_any_form_is_what_the_message_holds(message: onnx.TensorProto) -> None:
    shared, plain = SharedTensor(message), ir.serde.deserialize_tensor(message)
    held = shared.numpy()
    for array in (held, shared.numpy()):
        assert array.dtype == plain.numpy().dtype
        np.testing.assert_array_equal(array, plain.numpy())
