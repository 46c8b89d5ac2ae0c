"""Reductions along axes, and sums so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.hashing import hashed_along
from relayout.verify.field.operators.activation import function
from relayout.verify.field.residues import (
    multiplied,
    negated,
    product_along,
    ratio,
    reduced,
    summed,
)

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

_Axes = tuple[int, ...]


def _reducing(reduce: Callable[[FieldCall, Residues, _Axes], Residues]) -> FieldKernel:
    """A reduction that keeps its axes with length 1, which are then removed unless asked for."""

    def kernel(call: FieldCall) -> FieldTensor:
        numbers = call.residues(0)
        axes = _axes(call, numbers.ndim)
        if axes is None:
            return call.tensor(0)
        result = reduce(call, numbers, axes)
        return call.like(result if call.integer("keepdims", 1) else np.squeeze(result, axes))

    return kernel


def _axes(call: FieldCall, rank: int) -> _Axes | None:
    """The axes that are reduced; None where nothing is."""
    given = call.axes()
    if given:
        return tuple(axis % rank for axis in given)
    if call.integer("noop_with_empty_axes", 0):
        return None
    return tuple(range(rank))


def _sum(_call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    return summed(numbers, axes, keep=True)


def _mean(_call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    return mean(numbers, axes)


def mean(numbers: Residues, axes: _Axes) -> Residues:
    """The mean along axes that stay with length 1; that of nothing is 0."""
    count = math.prod(numbers.shape[axis] for axis in axes)
    return multiplied(summed(numbers, axes, keep=True), ratio(1, max(count, 1)))


def _sum_of_squares(_call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    return summed(multiplied(numbers, numbers), axes, keep=True)


def _length(call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    return function(call, "Sqrt", _sum_of_squares(call, numbers, axes))


def _sum_of_sizes(call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    sizes = function(call, "Abs", np.minimum(numbers, negated(numbers)))
    return summed(sizes, axes, keep=True)


def _log_of_sum(call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    return function(call, "Log", summed(numbers, axes, keep=True))


def _log_of_exponentials(call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    return _log_of_sum(call, function(call, "Exp", numbers), axes)


def _product(_call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
    for axis in axes:
        numbers = np.expand_dims(product_along(numbers, axis), axis)
    return numbers


def _extreme(name: str) -> FieldKernel:
    def reduce(call: FieldCall, numbers: Residues, axes: _Axes) -> Residues:
        if math.prod(numbers.shape[axis] for axis in axes) == 1:
            return numbers
        return hashed_along(call.key(name), numbers, axes, keep=True)

    return _reducing(reduce)


def cumulative_sum(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    axis = call.integers(1)[0]
    if call.integer("reverse", 0):
        numbers = np.flip(numbers, axis)
    total = reduced(np.cumsum(numbers, axis, dtype=np.int64))
    if call.integer("exclusive", 0):
        total = reduced(total - numbers)
    return call.like(np.flip(total, axis) if call.integer("reverse", 0) else total)


KERNELS: dict[str, FieldKernel] = {
    "ReduceSum": _reducing(_sum),
    "ReduceMean": _reducing(_mean),
    "ReduceSumSquare": _reducing(_sum_of_squares),
    "ReduceL1": _reducing(_sum_of_sizes),
    "ReduceL2": _reducing(_length),
    "ReduceLogSum": _reducing(_log_of_sum),
    "ReduceLogSumExp": _reducing(_log_of_exponentials),
    "ReduceProd": _reducing(_product),
    "ReduceMax": _extreme("Max"),
    "ReduceMin": _extreme("Min"),
    "CumSum": cumulative_sum,
}
