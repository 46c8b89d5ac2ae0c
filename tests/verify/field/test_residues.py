"""Arithmetic of the field against Python's own numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relayout.verify.field.products import TERMS, matrix_product
from relayout.verify.field.residues import (
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    PRIME,
    encoded,
    inverted,
    power,
    product_along,
)

RNG = np.random.default_rng(0)


def _exact(number: float) -> int:
    fraction = Fraction(number)
    return fraction.numerator * pow(fraction.denominator, -1, PRIME) % PRIME


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_floats_are_their_exact_values(dtype: type) -> None:
    numbers = [0, -0.0, 1, -1, 0.1, -3.14159, 1e-7, 6e4, 2.0**-14, 5e-8]
    given: Any = np.array(numbers).astype(dtype)
    wanted = [_exact(float(number)) for number in given]
    assert encoded(given).tolist() == wanted


def test_the_smallest_and_the_largest_float_are_exact() -> None:
    given = np.array([5e-324, 2.2250738585072014e-308, 1.7976931348623157e308])
    assert encoded(given).tolist() == [_exact(float(number)) for number in given]


def test_what_is_no_number_is_itself() -> None:
    given = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    assert encoded(given).tolist() == [INFINITY, NEGATIVE_INFINITY, NAN, 1]


def test_integers_wrap_round_the_prime() -> None:
    assert encoded(np.array([-1, PRIME, PRIME + 2])).tolist() == [PRIME - 1, 0, 2]
    assert encoded(np.array([2**64 - 1], np.uint64)).tolist() == [(2**64 - 1) % PRIME]


@pytest.mark.parametrize("terms", [1, 2, 700, TERMS + 3])
def test_products_of_the_largest_residues_are_exact(terms: int) -> None:
    left = np.full((2, terms), PRIME - 1)
    left[0, 0] = 3
    right = np.full((terms, 1), PRIME - 2)
    product = matrix_product(left, right)
    wanted = [(3 + (terms - 1) * (PRIME - 1)) * (PRIME - 2), terms * (PRIME - 1) * (PRIME - 2)]
    assert product[:, 0].tolist() == [each % PRIME for each in wanted]


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4, 2)), ((3, 0), (0, 2))],
)
def test_products_broadcast_as_numpy_does(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = RNG.integers(0, PRIME, left), RNG.integers(0, PRIME, right)
    wanted = (a.astype(object) @ b.astype(object)) % PRIME
    assert np.array_equal(matrix_product(a, b), wanted)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8, 1001])
def test_inverses(count: int) -> None:
    numbers = RNG.integers(0, PRIME, count)
    numbers[::7] = 0
    assert np.array_equal(inverted(numbers) * numbers % PRIME, (numbers != 0).astype(np.int64))


def test_powers() -> None:
    numbers = RNG.integers(1, PRIME, 5)
    for exponent in (0, 1, 2, 5, -1, -3):
        wanted = [pow(int(number), exponent, PRIME) for number in numbers]
        assert power(numbers, exponent).tolist() == wanted


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
def test_products_along_an_axis(length: int) -> None:
    numbers = RNG.integers(0, PRIME, (2, length, 3))
    wanted = np.prod(numbers.astype(object), 1) % PRIME
    assert np.array_equal(product_along(numbers, 1), wanted)
