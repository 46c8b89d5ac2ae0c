"""Normalisations by mean and variance, with the square root as a hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.hashing import hashed
from relayout.verify.field.operators.activation import function
from relayout.verify.field.operators.convolution import per_channel
from relayout.verify.field.operators.reduction import mean
from relayout.verify.field.residues import (
    added,
    divided,
    inverted,
    multiplied,
    negated,
    subtracted,
    summed,
)
from relayout.verify.field.values import UnknownError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

SCALE_PER_CHANNEL_SINCE = 21


def _deviation(call: FieldCall, variance: Residues, default: float = 1e-5) -> Residues:
    return function(call, "Sqrt", added(variance, call.encoded("epsilon", default)))


def normalised(call: FieldCall, numbers: Residues, axes: Sequence[int]) -> Residues:
    """(x - mean) / sqrt(variance + epsilon)."""
    centred = subtracted(numbers, mean(numbers, tuple(axes)))
    variance = mean(multiplied(centred, centred), tuple(axes))
    return divided(centred, _deviation(call, variance))


def _scaled(call: FieldCall, numbers: Residues, *, along_channels: bool) -> Residues:
    for place, apply in ((1, multiplied), (2, added)):
        if call.has(place):
            operand = call.residues(place)
            shaped = per_channel(operand, numbers.ndim) if along_channels else operand
            numbers = apply(numbers, shaped)
    return numbers


def batch_normalization(call: FieldCall) -> Computed:
    numbers = call.residues(0)
    if call.integer("training_mode", 0) or call.results > 1:
        raise UnknownError("in training")
    scale, bias, average, variance = (call.residues(i) for i in range(1, 5))
    factor = multiplied(scale, inverted(_deviation(call, variance)))
    rest = subtracted(bias, multiplied(average, factor))
    rank = numbers.ndim
    scaled = multiplied(numbers, per_channel(factor, rank))
    return call.like(added(scaled, per_channel(rest, rank)))


def layer_normalization(call: FieldCall) -> Computed:
    numbers = call.residues(0)
    axes = tuple(range(call.integer("axis", -1) % numbers.ndim, numbers.ndim))
    average = mean(numbers, axes)
    centred = subtracted(numbers, average)
    variance = mean(multiplied(centred, centred), axes)
    inverse = inverted(_deviation(call, variance))
    result = _scaled(call, multiplied(centred, inverse), along_channels=False)
    return call.like(result), call.like(average), call.like(inverse)


def rms_normalization(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    axes = tuple(range(call.integer("axis", -1) % numbers.ndim, numbers.ndim))
    square = mean(multiplied(numbers, numbers), axes)
    result = divided(numbers, _deviation(call, square))
    return call.like(multiplied(result, call.residues(1)))


def instance_normalization(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    result = normalised(call, numbers, range(2, numbers.ndim))
    return call.like(_scaled(call, result, along_channels=True))


def group_normalization(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    batch, channels, *lengths = numbers.shape
    groups = call.integer("num_groups", 1)
    apart = numbers.reshape(batch, groups, channels // groups, *lengths)
    result = normalised(call, apart, range(2, apart.ndim))
    if call.version < SCALE_PER_CHANNEL_SINCE:
        result = _scaled(call, result, along_channels=True)
        return call.like(result.reshape(numbers.shape))
    return call.like(_scaled(call, result.reshape(numbers.shape), along_channels=True))


def lp_normalization(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    axis = call.integer("axis", -1)
    if call.integer("p", 2) == 1:
        sizes = function(call, "Abs", np.minimum(numbers, negated(numbers)))
        return call.like(divided(numbers, summed(sizes, [axis], keep=True)))
    square = summed(multiplied(numbers, numbers), [axis], keep=True)
    return call.like(divided(numbers, function(call, "Sqrt", square)))


def lrn(call: FieldCall) -> FieldTensor:
    """Divides by (bias + alpha / size * sum of squares of channels near it) ^ beta."""
    numbers = call.residues(0)
    size = call.integer("size", 1)
    squares = multiplied(numbers, numbers)
    before = (size - 1) // 2
    near = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (numbers.ndim - 2)]
    padded = np.pad(squares, near)
    channels = numbers.shape[1]
    total = summed(np.stack([padded[:, i : i + channels] for i in range(size)]), [0])
    share = divided(call.encoded("alpha", 0.0001), np.asarray(size))
    base = added(call.encoded("bias", 1.0), multiplied(share, total))
    beta = float(np.float32(call.number("beta", 0.75)))
    return call.like(divided(numbers, hashed(call.key("power", beta), [base])))


KERNELS: dict[str, FieldKernel] = {
    "BatchNormalization": batch_normalization,
    "LayerNormalization": layer_normalization,
    "RMSNormalization": rms_normalization,
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
    "LpNormalization": lp_normalization,
    "LRN": lrn,
}
