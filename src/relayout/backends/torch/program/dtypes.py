"""Element types of ONNX as torch names them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.layout.transport import Array

NAMES = {
    ir.DataType.FLOAT: "float32",
    ir.DataType.DOUBLE: "float64",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.BFLOAT16: "bfloat16",
    ir.DataType.INT8: "int8",
    ir.DataType.INT16: "int16",
    ir.DataType.INT32: "int32",
    ir.DataType.INT64: "int64",
    ir.DataType.UINT8: "uint8",
    ir.DataType.UINT16: "uint16",
    ir.DataType.UINT32: "uint32",
    ir.DataType.UINT64: "uint64",
    ir.DataType.BOOL: "bool",
    ir.DataType.COMPLEX64: "complex64",
    ir.DataType.COMPLEX128: "complex128",
    ir.DataType.FLOAT8E4M3FN: "float8_e4m3fn",
    ir.DataType.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    ir.DataType.FLOAT8E5M2: "float8_e5m2",
    ir.DataType.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    ir.DataType.FLOAT8E8M0: "float8_e8m0fnu",
}

HELD = {
    ir.DataType.INT2: ir.DataType.INT8,
    ir.DataType.INT4: ir.DataType.INT8,
    ir.DataType.UINT2: ir.DataType.UINT8,
    ir.DataType.UINT4: ir.DataType.UINT8,
    ir.DataType.FLOAT4E2M1: ir.DataType.FLOAT8E4M3FN,
}
"""Types of less than a byte, and a type of a byte that has all their numbers."""

UNSIGNED = frozenset((ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64))
"""Types that torch stores but hardly computes in."""

FLOATS = frozenset(
    (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
)

REDUCED = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}
"""What a model of float32 may be run in instead."""

LARGEST = {ir.DataType.FLOAT16: 65504.0, ir.DataType.BFLOAT16: 3.3895313892515355e38}
"""The largest numbers of these types."""


@dataclass(frozen=True, slots=True)
class Precision:
    """The type in which what the model has as float32 is stored and computed."""

    reduced: ir.DataType = ir.DataType.FLOAT

    def of(self, dtype: ir.DataType) -> ir.DataType:
        """The type that a type of the model is computed in."""
        return self.reduced if dtype == ir.DataType.FLOAT else HELD.get(dtype, dtype)

    def fitted(self, array: Array, dtype: ir.DataType) -> Array:
        """The nearest numbers that the type they are computed in can hold.

        Exporters write the lowest float32 for "never": as an infinity, 0 times it would be NaN.
        """
        if dtype != ir.DataType.FLOAT or self.reduced == dtype:
            return array
        limit = LARGEST[self.reduced]
        fitting = np.clip(array, -limit, limit)
        return np.where(np.isfinite(array), fitting, array).astype(array.dtype)

    def name(self, dtype: ir.DataType) -> str:
        """Torch's name of the type that a type of the model is computed in."""
        own = self.of(dtype)
        if own not in NAMES:
            raise RelayoutError(f"torch has no element type {own.name}")
        return NAMES[own]


def limits_of(dtype: ir.DataType) -> tuple[int, int]:
    """The lowest and the largest number of an integer type."""
    signed = dtype.name.startswith("INT")
    return (-(1 << dtype.bitwidth - 1) if signed else 0, (1 << dtype.bitwidth - signed) - 1)


FULL = Precision()
"""All types as the model has them."""


def precision_of(name: str | None) -> Precision:
    if name is None:
        return FULL
    if name not in REDUCED:
        raise RelayoutError(f"unknown dtype {name!r}; it may be {' or '.join(REDUCED)}")
    return Precision(REDUCED[name])
