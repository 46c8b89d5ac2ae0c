"""Weights as arrays and as a file in the safetensors format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx_ir as ir

from relayout.backends.torch.program.dtypes import NAMES, Precision
from relayout.errors import RelayoutError
from relayout.layout.transport import Array

_FORMAT = {
    "bool": "BOOL",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "complex128": "C128",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
_ALIGNMENT = 64
"""The header is padded so that data starts at a multiple of this."""


def stored(tensor: ir.TensorProtocol, precision: Precision) -> Array:
    """The elements of a weight in the type the module computes in, in C order."""
    if precision.of(tensor.dtype) not in NAMES:
        raise RelayoutError(f"torch has no element type {tensor.dtype.name}")
    wanted = precision.of(tensor.dtype).numpy()
    fitting = precision.fitted(tensor.numpy(), tensor.dtype)
    array: Array = np.require(fitting.astype(wanted, copy=False), requirements="C")
    return array


def write_weights(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write a file that holds arrays by name."""
    header: dict[str, object] = {}
    offset = 0
    for name, array in arrays.items():
        span = [offset, offset + array.nbytes]
        kind = _FORMAT[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": span}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    with path.open("wb") as file:
        for part in _parts(text, arrays):
            file.write(part)


def _parts(header: bytes, arrays: Mapping[str, Array]) -> Iterator[bytes]:
    yield len(header).to_bytes(8, "little")
    yield header
    for array in arrays.values():
        yield array.tobytes()
