"""Tensors of a message, whose data is in memory once more at most, however many ask for it."""

from __future__ import annotations

from weakref import ref

import numpy as np
import onnx
import onnx_ir as ir

from relayout.layout.transport import Array


class SharedTensor(ir.serde.TensorProtoTensor):
    """A tensor whose array is one and the same as long as someone holds it or a view of it.

    Protobuf makes a copy each time the data of a message is asked for.
    """

    def __init__(self, message: onnx.TensorProto) -> None:
        super().__init__(message)
        self._data: ref[Array] | None = None

    def numpy(self) -> Array:
        held = None if self._data is None else self._data()
        if held is not None:
            return held.reshape(tuple(self.raw.dims))
        array: Array = super().numpy()
        # Views of views hold the array that the bytes were read as, not what is returned here.
        data = array.base
        if isinstance(data, np.ndarray) and not array.flags.writeable and _is_alike(data, array):
            self._data = ref(data)
        return array


def _is_alike(data: Array, array: Array) -> bool:
    """Whether two arrays differ in their shapes at most."""
    return data.dtype == array.dtype and data.size == array.size
