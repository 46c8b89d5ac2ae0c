"""Arithmetic modulo a prime, and floats as residues of their exact values."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.inputs import Array

Residues = npt.NDArray[np.int64]

# Products of two residues fit int64. 2 generates all residues, so that no small power of two
# is taken for 1; modulo 2^31 - 1 its order is 31.
PRIME = 2**31 - 19
FRACTION_BITS = 53
EXPONENTS = 1200
NEGATIVE_INFINITY = 1_618_033_988
INFINITY = PRIME - NEGATIVE_INFINITY
NAN = 271_828_182


def reduced(numbers: Array) -> Residues:
    return np.asarray(numbers % PRIME, np.int64)


def added(left: Array | int, right: Array | int) -> Residues:
    return _in_place(left + right)


def subtracted(left: Array | int, right: Array | int) -> Residues:
    return _in_place(left - right)


def multiplied(left: Array | int, right: Array | int) -> Residues:
    return _in_place(left * right)


def negated(numbers: Array) -> Residues:
    return _in_place(-numbers)


def _in_place(numbers: Array | int) -> Residues:
    """A new array, reduced where it lies."""
    new = np.asarray(numbers, np.int64)
    np.remainder(new, PRIME, out=new)
    return new


def divided(left: Array | int, right: Array) -> Residues:
    return multiplied(left, inverted(right))


def ratio(numerator: int, denominator: int = 1) -> int:
    """A rational number as a residue."""
    return numerator * pow(denominator, -1, PRIME) % PRIME


def inverted(numbers: Array) -> Residues:
    """The inverse of each residue, 0 for 0: one power for all, by a tree of products."""
    flat = np.ravel(numbers)
    if flat.size == 0:
        return np.asarray(numbers, np.int64)
    levels = [np.where(flat == 0, 1, flat)]
    while levels[-1].size > 1:
        levels.append(_halved(levels[-1]))
    inverse = np.array([pow(int(levels.pop()[0]), -1, PRIME)], np.int64)
    for level in reversed(levels):
        inverse = _doubled(level, inverse)
    return np.where(flat == 0, 0, inverse).reshape(np.shape(numbers))


def _halved(level: Residues) -> Residues:
    if level.size % 2:
        level = np.append(level, 1)
    return multiplied(level[0::2], level[1::2])


def _doubled(level: Residues, inverse: Residues) -> Residues:
    """The inverses of a level from those of the products of its pairs."""
    padded = np.append(level, 1) if level.size % 2 else level
    result = np.empty_like(padded)
    result[0::2] = multiplied(inverse, padded[1::2])
    result[1::2] = multiplied(inverse, padded[0::2])
    return result[: level.size]


def power(numbers: Array, exponent: int) -> Residues:
    """Each residue to a whole power."""
    if exponent < 0:
        return power(inverted(numbers), -exponent)
    result = np.ones(np.shape(numbers), np.int64)
    while exponent:
        if exponent & 1:
            result = multiplied(result, numbers)
        numbers = multiplied(numbers, numbers)
        exponent >>= 1
    return result


def product_along(numbers: Residues, axis: int) -> Residues:
    """The product along an axis, by halves."""
    while numbers.shape[axis] > 1:
        half = numbers.shape[axis] // 2
        first, second, rest = np.split(numbers, [half, 2 * half], axis)
        numbers = np.concatenate([multiplied(first, second), rest], axis)
    if numbers.shape[axis] == 0:
        shape = (*numbers.shape[:axis], *numbers.shape[axis + 1 :])
        return np.ones(shape, np.int64)
    return np.asarray(np.take(numbers, 0, axis), np.int64)


def summed(numbers: Residues, axes: Sequence[int] | None = None, *, keep: bool = False) -> Residues:
    """Sums of fewer than 2^32 residues fit int64."""
    along = None if axes is None else tuple(axes)
    return _in_place(np.asarray(np.sum(numbers, axis=along, keepdims=keep, dtype=np.int64)))


def encoded(numbers: Array) -> Residues:
    """The exact value of finite numbers; infinities and NaN are numbers of their own."""
    if numbers.dtype.kind in "bi":
        return reduced(numbers.astype(np.int64))
    if numbers.dtype.kind == "u":
        return np.asarray(numbers.astype(np.uint64) % np.uint64(PRIME), np.int64)
    if numbers.dtype.kind in "fV":
        return _encoded_floats(np.asarray(numbers.astype(np.float64)))
    raise TypeError(f"numbers of type {numbers.dtype} have no residues")


def _encoded_floats(numbers: npt.NDArray[np.float64]) -> Residues:
    finite = np.isfinite(numbers)
    fraction, exponent = np.frexp(np.where(finite, numbers, 0))
    whole = reduced(np.ldexp(fraction, FRACTION_BITS).astype(np.int64))
    result = multiplied(whole, _powers_of_two()[exponent + EXPONENTS])
    if finite.all():
        return result
    special = np.select(
        [np.isposinf(numbers), np.isneginf(numbers)], [INFINITY, NEGATIVE_INFINITY], NAN
    )
    return np.where(finite, result, special)


@lru_cache(maxsize=1)
def _powers_of_two() -> Residues:
    """2^(e - FRACTION_BITS) for each exponent e of a float64, from -EXPONENTS on."""
    exponents = range(-EXPONENTS - FRACTION_BITS, EXPONENTS - FRACTION_BITS)
    return np.array([pow(2, exponent, PRIME) for exponent in exponents], np.int64)
