"""Normalisations by the steps that define them: LiteRT has no builtins for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.backends.litert.lower.channels import channels_first
from relayout.backends.litert.lower.channels import channels_last as last
from relayout.backends.litert.lower.reduction import lrn
from relayout.layout.permutation import axis_among


def batch_normalization(call: LiteCall, *, axis: int) -> FlatTensor:
    """One factor and one shift for each channel, worked out now."""
    if call.view.integer("training_mode", 0):
        raise call.refusal("it takes statistics from the data")
    tensor = call.tensor(0)
    if any(call.known(index) is None for index in range(1, 5)):
        return _by_steps(call, tensor, axis)
    names = ("scale", "bias", "mean", "variance")
    scale, shift, mean, variance = (
        call.constant(index + 1, name).astype(np.float64) for index, name in enumerate(names)
    )
    factor = scale / np.sqrt(variance + call.number("epsilon", 1e-5))
    lengths = [1] * tensor.rank
    lengths[axis] = -1
    build = call.build
    factors, shifts = (
        build.constant(each.astype(tensor.dtype).reshape(lengths))
        for each in (factor, shift - mean * factor)
    )
    return build.broadcasting("ADD", [build.broadcasting("MUL", [tensor, factors]), shifts])


def _by_steps(call: LiteCall, tensor: FlatTensor, axis: int) -> FlatTensor:
    """With statistics that are worked out as the model runs."""
    build, lengths = call.build, [1] * tensor.rank
    lengths[axis] = tensor.shape[axis]
    scale, shift, mean, variance = (
        build.reshape(call.tensor(index), lengths) for index in range(1, 5)
    )
    root = build.unary("RSQRT", build.with_scalar("ADD", variance, call.number("epsilon", 1e-5)))
    centred = build.broadcasting("SUB", [tensor, mean])
    scaled = build.broadcasting("MUL", [centred, build.broadcasting("MUL", [root, scale])])
    return build.broadcasting("ADD", [scaled, shift])


def normalised(call: LiteCall, tensor: FlatTensor, axes: Sequence[int]) -> FlatTensor:
    """A tensor with mean 0 and variance 1 along axes."""
    build = call.build
    centred = build.broadcasting("SUB", [tensor, build.reduce("MEAN", tensor, axes)])
    variance = build.reduce("MEAN", build.unary("SQUARE", centred), axes)
    shifted = build.with_scalar("ADD", variance, call.number("epsilon", 1e-5))
    return build.broadcasting("MUL", [centred, build.unary("RSQRT", shifted)])


def layer_normalization(call: LiteCall) -> FlatTensor:
    if call.view.uses_result(1) or call.view.uses_result(2):
        raise call.refusal("its statistics are read")
    tensor, build = call.tensor(0), call.build
    axis = axis_among(call.view.integer("axis", -1), tensor.rank)
    result = normalised(call, tensor, list(range(axis, tensor.rank)))
    result = build.broadcasting("MUL", [result, call.tensor(1)])
    return build.broadcasting("ADD", [result, call.tensor(2)]) if call.has(2) else result


def rms_normalization(call: LiteCall) -> FlatTensor:
    tensor, build = call.tensor(0), call.build
    axis = axis_among(call.view.integer("axis", -1), tensor.rank)
    axes = list(range(axis, tensor.rank))
    mean = build.reduce("MEAN", build.unary("SQUARE", tensor), axes)
    shifted = build.with_scalar("ADD", mean, call.number("epsilon", 1e-5))
    result = build.broadcasting("MUL", [tensor, build.unary("RSQRT", shifted)])
    return build.broadcasting("MUL", [result, call.tensor(1)])


def instance_normalization(call: LiteCall, *, axis: int) -> FlatTensor:
    """Each channel of each picture by itself."""
    tensor, build = call.tensor(0), call.build
    place = axis % tensor.rank
    axes = [each for each in range(1, tensor.rank) if each != place]
    lengths = [1] * tensor.rank
    lengths[place] = tensor.shape[place]
    scale, shift = (build.reshape(call.tensor(index), lengths) for index in (1, 2))
    scaled = build.broadcasting("MUL", [normalised(call, tensor, axes), scale])
    return build.broadcasting("ADD", [scaled, shift])


def group_normalization(call: LiteCall, *, axis: int) -> FlatTensor:
    """Channels in groups; up to opset 20 a group has one factor."""
    tensor, build = call.tensor(0), call.build
    place, groups = axis % tensor.rank, call.view.integer("num_groups", 1)
    each = tensor.shape[place] // groups
    lengths = (*tensor.shape[:place], groups, each, *tensor.shape[place + 1 :])
    parted = build.reshape(tensor, lengths)
    axes = [i for i in range(1, len(lengths)) if i != place]
    result = normalised(call, parted, axes)
    per_channel = [1] * len(lengths)
    per_channel[place] = groups
    if call.tensor(1).shape == (tensor.shape[place],):
        per_channel[place + 1] = each
    scale, shift = (build.reshape(call.tensor(index), per_channel) for index in (1, 2))
    result = build.broadcasting("ADD", [build.broadcasting("MUL", [result, scale]), shift])
    return build.reshape(result, tensor.shape)


def lp_normalization(call: LiteCall) -> FlatTensor:
    tensor, build, axis = call.tensor(0), call.build, call.axis(-1)
    if call.view.integer("p", 2) == 1:
        norm = build.reduce("SUM", build.unary("ABS", tensor), [axis])
    else:
        norm = build.unary("SQRT", build.reduce("SUM", build.unary("SQUARE", tensor), [axis]))
    return build.broadcasting("DIV", [tensor, norm])


LOWERINGS: dict[str, LiteLowering] = {
    "BatchNormalization": partial(batch_normalization, axis=1),
    "GroupNormalization": partial(group_normalization, axis=1),
    "InstanceNormalization": partial(instance_normalization, axis=1),
    "LRN": channels_first(lrn),
    "LayerNormalization": layer_normalization,
    "LpNormalization": lp_normalization,
    "RMSNormalization": rms_normalization,
}

CHANNELS_LAST: dict[str, LiteLowering] = {
    "BatchNormalization": partial(batch_normalization, axis=-1),
    "GroupNormalization": partial(group_normalization, axis=-1),
    "InstanceNormalization": partial(instance_normalization, axis=-1),
    "LRN": last(lrn),
}
