"""Pools over windows and over whole spatial axes."""

from __future__ import annotations

import numpy as np

from relayout.backends.litert.builtins import SAME, VALID
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatData, FlatTensor
from relayout.backends.litert.lower.channels import as_given, as_picture, channels_first, two
from relayout.backends.litert.lower.channels import channels_last as last
from relayout.backends.litert.lower.window import SlidingPads, ceiled, window_of

NOT_NEGATIVE = frozenset({"RELU", "RELU6", "RELU_0_TO_1", "LOGISTIC"})


def _window(call: LiteCall, tensor: FlatTensor) -> SlidingPads:
    if tensor.rank not in {3, 4}:
        raise call.refusal(f"LiteRT has no pool of {tensor.rank} axes")
    if call.view.uses_result(1):
        raise call.refusal("LiteRT's pools do not give the places they took")
    sizes = call.view.ints("kernel_shape") or ()
    window = window_of(call, tensor.shape[1:-1], sizes)
    if max(window.dilations) > 1:
        raise call.refusal("LiteRT's pools have no gaps in their windows")
    return ceiled(window) if call.view.integer("ceil_mode", 0) else window


def _pooled(
    call: LiteCall, builtin: str, tensor: FlatTensor, window: SlidingPads, padding: int
) -> FlatTensor:
    picture = as_picture(call, tensor)
    counts, sizes, strides = two(window.counts), two(window.sizes), two(window.strides)
    result = call.build.put(
        builtin,
        [picture],
        (picture.shape[0], *counts, picture.shape[-1]),
        padding=padding,
        strideH=strides[0],
        strideW=strides[1],
        filterHeight=sizes[0],
        filterWidth=sizes[1],
    )
    return as_given(call, result, tensor.rank)


def max_pool(call: LiteCall, tensor: FlatTensor) -> FlatTensor:
    window = _window(call, tensor)
    if window.is_same:
        return _pooled(call, "MAX_POOL_2D", tensor, window, SAME)
    # What is added never wins: nothing is less, or nothing that is there is less than 0.
    value = 0.0 if _is_not_negative(call, tensor) else _lowest(tensor)
    padded = call.build.pad(tensor, _around(window), value)
    return _pooled(call, "MAX_POOL_2D", padded, window, VALID)


def _lowest(tensor: FlatTensor) -> float:
    return -np.inf if tensor.dtype.kind == "f" else int(np.iinfo(tensor.dtype).min)


def _is_not_negative(call: LiteCall, tensor: FlatTensor) -> bool:
    operators = reversed(call.build.graph.operators)
    producer = next((each for each in operators if tensor in each.outputs), None)
    return producer is not None and producer.builtin in NOT_NEGATIVE


def _around(window: SlidingPads) -> list[tuple[int, int]]:
    return [(0, 0), *zip(window.before, window.after, strict=True), (0, 0)]


def average_pool(call: LiteCall, tensor: FlatTensor) -> FlatTensor:
    """LiteRT divides by what of a window lies inside: so does SAME, and padded zeros count."""
    includes = bool(call.view.integer("count_include_pad", 0))
    window = _window(call, tensor)
    if window.is_valid and window.sizes == window.lengths:
        # XNNPACK has means of bytes, and no pools that average them.
        return call.build.reduce("MEAN", tensor, list(range(1, tensor.rank - 1)))
    if window.is_valid or (window.is_same and not includes):
        padding = VALID if window.is_valid else SAME
        return _pooled(call, "AVERAGE_POOL_2D", tensor, window, padding)
    padded = call.build.pad(tensor, _around(window))
    mean = _pooled(call, "AVERAGE_POOL_2D", padded, window, VALID)
    asked = window_of(call, tensor.shape[1:-1], window.sizes)
    factors = _factors(window, asked, includes=includes)
    if (factors == 1.0).all():
        return mean
    return call.build.broadcasting(
        "MUL", [mean, call.build.constant(factors.astype(mean.dtype)[None, ..., None])]
    )


def _factors(window: SlidingPads, asked: SlidingPads, *, includes: bool) -> FlatData:
    """By how much too small a mean over padded windows is."""
    whole = np.ones((), np.float64)
    axes = zip(
        window.lengths, window.before, asked.after, window.sizes, window.strides, strict=True
    )
    for (length, begin, end, size, stride), count in zip(axes, window.counts, strict=True):
        starts = np.arange(count) * stride - begin
        low, high = (-begin, length + end) if includes else (0, length)
        inside = np.minimum(starts + size, high) - np.maximum(starts, low)
        whole = np.multiply.outer(whole, size / inside)
    return np.asarray(whole)


def _over_all(builtin: str, *, first: bool) -> LiteLowering:
    def lower(call: LiteCall) -> FlatTensor:
        tensor = call.tensor(0)
        axes = range(2, tensor.rank) if first else range(1, tensor.rank - 1)
        return call.build.reduce(builtin, tensor, list(axes))

    return lower


LOWERINGS: dict[str, LiteLowering] = {
    "AveragePool": channels_first(average_pool),
    "GlobalAveragePool": _over_all("MEAN", first=True),
    "GlobalMaxPool": _over_all("REDUCE_MAX", first=True),
    "MaxPool": channels_first(max_pool),
}

CHANNELS_LAST: dict[str, LiteLowering] = {
    "AveragePool": last(average_pool),
    "GlobalAveragePool": _over_all("MEAN", first=False),
    "GlobalMaxPool": _over_all("REDUCE_MAX", first=False),
    "MaxPool": last(max_pool),
}
