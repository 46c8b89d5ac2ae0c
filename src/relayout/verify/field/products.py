"""Products of matrices of residues, by the float64 products of the library under numpy.

A residue is a high half of 15 bits and a low half of 16. Three products of halves make one of
residues (Karatsuba); sums of up to `TERMS` of them stay below 2^53, where float64 is exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from relayout.verify.field.residues import PRIME, Residues, added, reduced

HALF = 16
LOW = (1 << HALF) - 1
TERMS = 1 << 18

_Floats = npt.NDArray[np.float64]


def matrix_product(left: Residues, right: Residues) -> Residues:
    """As `numpy.matmul`, for operands of two or more axes."""
    if right.ndim == 2 and left.ndim > 2:
        rows = left.reshape(-1, left.shape[-1])
        return matrix_product(rows, right).reshape(*left.shape[:-1], right.shape[-1])
    terms = left.shape[-1]
    if terms == 1 and right.shape[-2] == 1:
        return reduced(left * right)
    result = _product(left[..., :TERMS], right[..., :TERMS, :])
    for start in range(TERMS, terms, TERMS):
        stop = start + TERMS
        result = added(result, _product(left[..., start:stop], right[..., start:stop, :]))
    return result


def _product(left: Residues, right: Residues) -> Residues:
    left_high, left_low = _halves(left)
    right_high, right_low = _halves(right)
    high = left_high @ right_high
    low = left_low @ right_low
    left_low += left_high
    right_low += right_high
    middle = left_low @ right_low
    middle -= high
    middle -= low
    result = _whole(high) * ((1 << 2 * HALF) % PRIME)
    result %= PRIME
    result += _whole(middle) << HALF
    result += _whole(low)
    return reduced(result)


def _halves(numbers: Residues) -> tuple[_Floats, _Floats]:
    return (numbers >> HALF).astype(np.float64), (numbers & LOW).astype(np.float64)


def _whole(numbers: _Floats) -> Residues:
    return reduced(numbers.astype(np.int64))
