"""Two arrays hold the same bits or do not, in whatever order of their axes each is stored."""

from __future__ import annotations

import mmap
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relayout.verify.proof import bits, parts
from relayout.verify.proof.bits import same_bits
from relayout.verify.proof.parts import Array

SHAPES = [(), (7,), (0, 40), (90, 70), (40, 3, 50), (1, 40, 1, 60), (3, 5, 7), (33, 34, 35)]
TYPES = [np.float32, np.complex128, np.int8, np.float64]


@pytest.fixture(autouse=True)
def _several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK", 3000)
    monkeypatch.setattr(bits, "SIDE", 16)
    monkeypatch.setattr(bits, "NARROW", 8)
    monkeypatch.setattr(bits, "AT_ONCE", 2)
    monkeypatch.setattr(bits, "MOST_MAPPED", 500)


def stored(folder: Path, array: Array, order: tuple[int, ...]) -> Array:
    """The array, from a file in which its axes lie in this order."""
    path = folder / f"axes{order}"
    path.write_bytes(b"\0" * 16 + array.transpose(order).tobytes())
    with path.open("rb") as file:
        window = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    lengths = [array.shape[axis] for axis in order]
    flat = np.frombuffer(window, array.dtype, array.size, 16)
    return flat.reshape(lengths).transpose(np.argsort(order).astype(int))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_order_of_the_same_and_of_nothing_else(
    tmp_path: Path, shape: tuple[int, ...], dtype: Any
) -> None:
    numbers: Array = np.asarray(np.random.default_rng(0).standard_normal(shape) * 50).astype(dtype)
    if numbers.size and numbers.dtype.kind in "fc":
        numbers.reshape(-1)[0] = np.nan
    orders = list(permutations(range(len(shape))))
    views = [stored(tmp_path, numbers, order) for order in orders]
    assert all(same_bits(numbers, view) and same_bits(view, numbers) for view in views)
    for place in {numbers.size // 3, numbers.size - 1} if numbers.size > 1 else ():
        other = numbers.copy()
        other.reshape(-1)[place] += 1
        assert not any(same_bits(other, view) or same_bits(view, other) for view in views)


def test_zeros_of_both_signs_differ() -> None:
    zeros = np.zeros((40, 50), np.float32)
    assert not same_bits(zeros, (-zeros.T.copy()).T)


def test_strings_are_compared_as_they_are() -> None:
    words = np.array([["a", "b"], ["c", "d"]], dtype=object)
    assert same_bits(words, words.T.copy().T)
    assert not same_bits(words, words.T)
