"""Constants are told apart by all that they hold, and by nothing else."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from relayout.verify.proof import parts
from relayout.verify.proof.canonical import Canonical, canonical
from relayout.verify.proof.contents import Contents
from relayout.verify.proof.parts import Array

SHAPES = [(), (0, 3), (300,), (30, 30), (3, 20, 20), (5, 5, 5), (1, 7, 1)]
TYPES = [np.float32, np.complex128, np.int8, np.float16]


def form(known: Contents, array: Array) -> Canonical:
    return canonical(known, lambda: array)


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK", 64)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_order_of_axes_does_not_matter_and_any_other_change_does(
    shape: tuple[int, ...], dtype: Any
) -> None:
    numbers = (np.random.default_rng(0).standard_normal(shape) * 50).astype(dtype)
    if numbers.size and numbers.dtype.kind in "fc":
        numbers.reshape(-1)[-1] = np.nan
    known = Contents()
    orders = [numbers.transpose(order).copy() for order in permutations(range(len(shape)))]
    found = {form(known, one).content for one in orders}
    assert len(found) == 1
    for place in {0, numbers.size // 2} if numbers.size > 1 else ():
        other = numbers.copy()
        other.reshape(-1)[place] += 1
        assert form(known, other).content not in found


def test_axes_that_begin_alike_are_told_apart_by_what_lies_along_them() -> None:
    numbers = np.zeros((40, 40), np.float32)
    numbers[3:9, 20] = 1
    known = Contents()
    first, second = (form(known, one) for one in (numbers, numbers.T.copy()))
    assert first.content == second.content
    assert first.places != second.places
