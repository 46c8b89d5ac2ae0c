"""Pools: means exactly, largest elements as functions of the multiset in a window."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.hashing import concluded, hashed_along, mixed, words_of
from relayout.verify.field.operators.activation import function
from relayout.verify.field.operators.windows import Windows, windows_of
from relayout.verify.field.residues import (
    inverted,
    multiplied,
    negated,
    power,
    ratio,
    reduced,
    summed,
)
from relayout.verify.field.values import UnknownValue

if TYPE_CHECKING:
    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor


def _windows(call: FieldCall, numbers: Residues) -> Windows:
    windows = windows_of(call, numbers.shape[2:], call.listed("kernel_shape", ()))
    call.context.check((*numbers.shape[:2], *windows.counts))
    return windows


def max_pool(call: FieldCall) -> Computed:
    numbers = call.residues(0)
    windows = _windows(call, numbers)
    indexes = (
        UnknownValue("MaxPool: the places of the largest elements") if call.results > 1 else None
    )
    if math.prod(windows.kernel) == 1:
        return call.like(windows.at(windows.padded(numbers), [0] * (numbers.ndim - 2))), indexes
    key = call.key("Max")
    padded = windows.padded(mixed(words_of(numbers), key))
    total = np.zeros((*numbers.shape[:2], *windows.counts), np.uint64)
    for offset in windows.offsets():
        total += windows.at(padded, offset)
    return call.like(concluded(total, key)), indexes


def average_pool(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    windows = _windows(call, numbers)
    return call.like(multiplied(_sums(windows, numbers), inverted(_counts(call, windows, numbers))))


def _sums(windows: Windows, numbers: Residues) -> Residues:
    padded = windows.padded(numbers)
    total = np.zeros((*numbers.shape[:2], *windows.counts), np.int64)
    for offset in windows.offsets():
        total += windows.at(padded, offset)
    return reduced(total)


def _counts(call: FieldCall, windows: Windows, numbers: Residues) -> Residues:
    """How many elements of each window count: those of the input, and padding if asked for."""
    ones = np.ones((1, 1, *numbers.shape[2:]), np.int64)
    if call.integer("count_include_pad", 0):
        widths = list(zip(windows.before, windows.after, strict=True))
        ones = np.pad(ones, [(0, 0), (0, 0), *widths], constant_values=1)
        within = Windows(
            windows.kernel,
            windows.strides,
            windows.dilations,
            (0,) * len(widths),
            (0,) * len(widths),
            windows.counts,
        )
        return _sums(within, ones)
    return _sums(windows, ones)


def lp_pool(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    return call.like(_root(call, _sums(_windows(call, numbers), _powers(call, numbers))))


def _powers(call: FieldCall, numbers: Residues) -> Residues:
    """|x|^p: even powers are products."""
    degree = call.integer("p", 2)
    if degree % 2 == 0:
        return power(numbers, degree)
    size = function(call, "Abs", np.minimum(numbers, negated(numbers)))
    return power(size, degree)


def _root(call: FieldCall, numbers: Residues) -> Residues:
    degree = call.integer("p", 2)
    if degree == 1:
        return numbers
    return function(call, "Sqrt" if degree == 2 else f"root {degree}", numbers)


def _spatial(numbers: Residues) -> tuple[int, ...]:
    return tuple(range(2, numbers.ndim))


def global_average_pool(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    count = math.prod(numbers.shape[2:])
    total = summed(numbers, _spatial(numbers), keep=True)
    return call.like(multiplied(total, ratio(1, count)))


def global_max_pool(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    if math.prod(numbers.shape[2:]) == 1:
        return call.like(numbers)
    return call.like(hashed_along(call.key("Max"), numbers, _spatial(numbers), keep=True))


def global_lp_pool(call: FieldCall) -> FieldTensor:
    numbers = _powers(call, call.residues(0))
    return call.like(_root(call, summed(numbers, _spatial(numbers), keep=True)))


KERNELS: dict[str, FieldKernel] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "GlobalAveragePool": global_average_pool,
    "GlobalMaxPool": global_max_pool,
    "GlobalLpPool": global_lp_pool,
}
