"""Convolutions, channels last with weights as outputs, spatial axes, inputs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from relayout.backends.litert.builder import INT32
from relayout.backends.litert.builtins import SAME, VALID
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatShape, FlatTensor
from relayout.backends.litert.lower.channels import as_given, as_picture, two
from relayout.backends.litert.lower.window import SlidingPads, same_pads, window_of

Operands: TypeAlias = tuple[FlatTensor, FlatTensor, FlatTensor]
"""A tensor stored channels last, its weight and its bias."""

MOST_GROUPS = 64
"""A transposed convolution has one builtin for each group; more are refused."""


def conv(call: LiteCall, tensor: FlatTensor, weight: FlatTensor) -> FlatTensor:
    """A convolution of tensors stored channels last."""
    rank, outputs = tensor.rank, weight.shape[0]
    if rank not in {3, 4, 5}:
        raise call.refusal(f"LiteRT has no convolution of {rank} axes")
    window = window_of(call, tensor.shape[1:-1], weight.shape[1:-1])
    bias = _bias(call, 2, outputs)
    if rank == 5:
        return _conv_3d(call, (tensor, weight, bias), window)
    if rank == 3:
        tensor = as_picture(call, tensor)
        weight = call.build.reshape(weight, (outputs, 1, *weight.shape[1:]))
        window = _for_two(window)
    return as_given(call, _conv_2d(call, (tensor, weight, bias), window), rank)


def _for_two(window: SlidingPads) -> SlidingPads:
    return SlidingPads(
        two(window.lengths),
        two(window.sizes),
        two(window.strides),
        two(window.dilations),
        two(window.before, 0),
        two(window.after, 0),
    )


def _conv_2d(call: LiteCall, operands: Operands, window: SlidingPads) -> FlatTensor:
    tensor, weight, bias = operands
    padding = SAME if window.is_same else VALID
    if padding == VALID:
        tensor = call.build.pad(tensor, _around(window))
    options = {
        "padding": padding,
        "strideH": window.strides[0],
        "strideW": window.strides[1],
        "dilationHFactor": window.dilations[0],
        "dilationWFactor": window.dilations[1],
    }
    shape = (tensor.shape[0], *window.counts, weight.shape[0])
    channels, groups = tensor.shape[-1], call.view.integer("group", 1)
    if groups == channels and groups > 1 and weight.shape[-1] == 1:
        by_channel = call.build.transpose(weight, (3, 1, 2, 0))
        options["depthMultiplier"] = weight.shape[0] // channels
        return call.build.put("DEPTHWISE_CONV_2D", [tensor, by_channel, bias], shape, **options)
    return call.build.put("CONV_2D", [tensor, weight, bias], shape, **options)


def _conv_3d(call: LiteCall, operands: Operands, window: SlidingPads) -> FlatTensor:
    tensor, weight, bias = operands
    if call.view.integer("group", 1) != 1:
        raise call.refusal("LiteRT has no convolution of three spatial axes in groups")
    padding = SAME if window.is_same else VALID
    if padding == VALID:
        tensor = call.build.pad(tensor, _around(window))
    names = ("D", "H", "W")
    strides = {f"stride{n}": s for n, s in zip(names, window.strides, strict=True)}
    dilations = {f"dilation{n}Factor": s for n, s in zip(names, window.dilations, strict=True)}
    filters = call.build.transpose(weight, (1, 2, 3, 4, 0))
    shape = (tensor.shape[0], *window.counts, weight.shape[0])
    options = {"padding": padding, **strides, **dilations}
    return call.build.put("CONV_3D", [tensor, filters, bias], shape, **options)


def _around(window: SlidingPads) -> list[tuple[int, int]]:
    """What is added to each axis of a tensor stored channels last."""
    return [(0, 0), *zip(window.before, window.after, strict=True), (0, 0)]


def _bias(call: LiteCall, index: int, outputs: int) -> FlatTensor:
    if call.has(index):
        return call.tensor(index)
    return call.build.constant(np.zeros(outputs, call.tensor(0).dtype), hint="zero_bias")


def conv_transpose(call: LiteCall, tensor: FlatTensor, weight: FlatTensor) -> FlatTensor:
    """A transposed convolution; its weight has the outputs of one group along axis 0."""
    rank, groups = tensor.rank, call.view.integer("group", 1)
    if rank not in {3, 4}:
        raise call.refusal(f"LiteRT has no transposed convolution of {rank} axes")
    if groups > MOST_GROUPS:
        raise call.refusal(f"it has {groups} groups, and LiteRT one builtin for each")
    extra = call.view.ints("output_padding") or (0,) * (rank - 2)
    window = window_of(call, tensor.shape[1:-1], weight.shape[1:-1])
    window = replace(window, **_given_pads(call, window, extra))
    bias = _bias(call, 2, weight.shape[0] * groups)
    if rank == 3:
        tensor = as_picture(call, tensor)
        weight = call.build.reshape(weight, (weight.shape[0], 1, *weight.shape[1:]))
        window, extra = _for_two(window), two(extra, 0)
    weight = _dilated(call, weight, window.dilations)
    parts = []
    depth, outputs = tensor.shape[-1] // groups, weight.shape[0]
    for group in range(groups):
        own = [
            call.build.slice(each, (0, 0, 0, group * depth), (*each.shape[:-1], depth))
            if each.data is None
            else call.build.constant(each.data[..., group * depth : (group + 1) * depth])
            for each in (tensor, weight)
        ]
        one = _part(call, bias, group * outputs, outputs)
        parts.append(_transposed(call, (own[0], own[1], one), window, extra))
    return as_given(call, call.build.concat(parts, 3), rank)


def _part(call: LiteCall, bias: FlatTensor, start: int, length: int) -> FlatTensor:
    if bias.data is not None:
        return call.build.constant(bias.data[start : start + length], hint=bias.name)
    return call.build.slice(bias, (start,), (length,))


def _given_pads(call: LiteCall, window: SlidingPads, extra: FlatShape) -> dict[str, FlatShape]:
    """What is cut off the full result, where the node states the result or how it is padded."""
    asked = call.view.ints("output_shape")
    mode = call.view.string("auto_pad", "NOTSET")
    if asked is None and mode in {"NOTSET", "VALID"}:
        return {}
    full = [
        (n - 1) * s + reach + e
        for n, s, reach, e in zip(window.lengths, window.strides, window.reach, extra, strict=True)
    ]
    wanted = (
        asked[-len(full) :]
        if asked
        else [n * s for n, s in zip(window.lengths, window.strides, strict=True)]
    )
    totals = [max(whole - length, 0) for whole, length in zip(full, wanted, strict=True)]
    halves = tuple(total // 2 for total in totals)
    rest = tuple(total - half for total, half in zip(totals, halves, strict=True))
    is_upper = mode == "SAME_UPPER"
    return {"before": halves, "after": rest} if is_upper else {"before": rest, "after": halves}


def _dilated(call: LiteCall, weight: FlatTensor, dilations: FlatShape) -> FlatTensor:
    """Filters with zeros in their gaps: the builtin has no gaps."""
    if max(dilations) == 1:
        return weight
    if weight.data is None:
        raise call.refusal("LiteRT has no dilated transposed convolution")
    outputs, height, width, inputs = weight.shape
    reach = [(n - 1) * gap + 1 for n, gap in zip((height, width), dilations, strict=True)]
    spread = np.zeros((outputs, *reach, inputs), weight.dtype)
    spread[:, :: dilations[0], :: dilations[1]] = weight.data
    return call.build.constant(spread, hint=weight.name)


def _transposed(
    call: LiteCall, operands: Operands, window: SlidingPads, extra: FlatShape
) -> FlatTensor:
    """The result in one step where SAME cuts off what is asked, or else a part of the full one."""
    tensor, weight, bias = operands
    axes = zip(window.lengths, window.strides, weight.shape[1:3], extra, strict=True)
    full = tuple((n - 1) * s + size + e for n, s, size, e in axes)
    cut = [b + a for b, a in zip(window.before, window.after, strict=True)]
    lengths = tuple(whole - gone for whole, gone in zip(full, cut, strict=True))
    batch, outputs = tensor.shape[0], weight.shape[0]
    pads = [
        same_pads(n, k, s)
        for n, k, s in zip(lengths, weight.shape[1:3], window.strides, strict=True)
    ]
    is_same = (
        lengths == tuple(n * s for n, s in zip(window.lengths, window.strides, strict=True))
        and not any(extra)
        and pads == list(zip(window.before, window.after, strict=True))
    )
    shape = (batch, *(lengths if is_same else full), outputs)
    result = call.build.put(
        "TRANSPOSE_CONV",
        [call.build.constant(shape, INT32), weight, tensor, bias],
        shape,
        tensor.dtype,
        padding=SAME if is_same else VALID,
        strideH=window.strides[0],
        strideW=window.strides[1],
    )
    if is_same:
        return result
    return call.build.slice(result, (0, *window.before, 0), (batch, *lengths, outputs))


def _as_stored_last(call: LiteCall, weight: FlatTensor, *, inputs_first: bool) -> FlatTensor:
    """A weight of the standard operator as outputs, spatial axes, inputs."""
    spatial = tuple(range(2, weight.rank))
    order = (1, *spatial, 0) if inputs_first else (0, *spatial, 1)
    return call.build.transpose(weight, order)


def _first(call: LiteCall, *, transposed: bool) -> FlatTensor:
    """The standard operator, which has channels first."""
    tensor, rank = call.tensor(0), call.tensor(0).rank
    last = call.build.transpose(tensor, (0, *range(2, rank), 1))
    weight = _as_stored_last(call, call.tensor(1), inputs_first=transposed)
    result = (conv_transpose if transposed else conv)(call, last, weight)
    return call.build.transpose(result, (0, rank - 1, *range(1, rank - 1)))


LOWERINGS: dict[str, LiteLowering] = {
    "Conv": partial(_first, transposed=False),
    "ConvTranspose": partial(_first, transposed=True),
}

CHANNELS_LAST: dict[str, LiteLowering] = {
    "Conv": lambda call: conv(call, call.tensor(0), call.tensor(1)),
    "ConvTranspose": lambda call: conv_transpose(call, call.tensor(0), call.tensor(1)),
}
