"""Reductions along axes."""

from __future__ import annotations

import numpy as np

from relayout.backends.litert.builder import INT32
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.layout.permutation import axis_among

INT64_OUTPUT = 4
"""The number that the schema has for the type int64."""


def _axes(call: LiteCall, tensor: FlatTensor) -> list[int]:
    axes = call.numbers("axes", 1)
    if not axes:
        is_none = call.view.integer("noop_with_empty_axes", 0)
        return [] if is_none else list(range(tensor.rank))
    return sorted({axis_among(axis, tensor.rank) for axis in axes})


def _reduced(call: LiteCall, builtin: str, tensor: FlatTensor) -> FlatTensor:
    keep = bool(call.view.integer("keepdims", 1))
    return call.build.reduce(builtin, tensor, _axes(call, tensor), keep=keep)


def plain(builtin: str) -> LiteLowering:
    return lambda call: _reduced(call, builtin, call.tensor(0))


def of_each(builtin: str, first: str, last: str | None = None) -> LiteLowering:
    """A reduction of what a builtin makes of each element, and one of its result."""

    def lower(call: LiteCall) -> FlatTensor:
        result = _reduced(call, builtin, call.build.unary(first, call.tensor(0)))
        return result if last is None else call.build.unary(last, result)

    return lower


def log_sum(call: LiteCall) -> FlatTensor:
    return call.build.unary("LOG", _reduced(call, "SUM", call.tensor(0)))


def log_sum_exp(call: LiteCall) -> FlatTensor:
    """The largest number apart, so that nothing overflows."""
    build, tensor = call.build, call.tensor(0)
    axes = _axes(call, tensor)
    most = build.reduce("REDUCE_MAX", tensor, axes)
    powers = build.unary("EXP", build.broadcasting("SUB", [tensor, most]))
    total = build.unary("LOG", build.reduce("SUM", powers, axes))
    result = build.broadcasting("ADD", [total, most])
    if call.view.integer("keepdims", 1):
        return result
    return build.reshape(result, [n for i, n in enumerate(tensor.shape) if i not in axes])


def place_of(builtin: str) -> LiteLowering:
    """The place of the largest or smallest entry, the first one of equals."""

    def lower(call: LiteCall) -> FlatTensor:
        if call.view.integer("select_last_index", 0):
            raise call.refusal("LiteRT takes the first of equal entries")
        tensor, axis = call.tensor(0), call.axis(0)
        shape = (*tensor.shape[:axis], *tensor.shape[axis + 1 :])
        operands = [tensor, call.build.constant(axis, INT32)]
        found = call.build.put(builtin, operands, shape, np.int64, outputType=INT64_OUTPUT)
        if not call.view.integer("keepdims", 1):
            return found
        return call.build.reshape(found, (*tensor.shape[:axis], 1, *tensor.shape[axis + 1 :]))

    return lower


def cum_sum(call: LiteCall) -> FlatTensor:
    tensor = call.tensor(0)
    axis = axis_among(int(call.constant(1, "axis").reshape(-1)[0]), tensor.rank)
    return call.build.put(
        "CUMSUM",
        [tensor, call.build.constant(axis, INT32)],
        tensor.shape,
        exclusive=bool(call.view.integer("exclusive", 0)),
        reverse=bool(call.view.integer("reverse", 0)),
    )


def lrn(call: LiteCall, tensor: FlatTensor) -> FlatTensor:
    """Over neighbouring channels; LiteRT has windows of odd length."""
    size = call.view.integer("size", 1)
    if size % 2 == 0:
        raise call.refusal("LiteRT's windows over channels have an odd length")
    return call.build.put(
        "LOCAL_RESPONSE_NORMALIZATION",
        [tensor],
        tensor.shape,
        radius=size // 2,
        bias=call.number("bias", 1.0),
        alpha=call.number("alpha", 1e-4) / size,
        beta=call.number("beta", 0.75),
    )


LOWERINGS: dict[str, LiteLowering] = {
    "ArgMax": place_of("ARG_MAX"),
    "ArgMin": place_of("ARG_MIN"),
    "CumSum": cum_sum,
    "ReduceL1": of_each("SUM", "ABS"),
    "ReduceL2": of_each("SUM", "SQUARE", "SQRT"),
    "ReduceLogSum": log_sum,
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": plain("REDUCE_MAX"),
    "ReduceMean": plain("MEAN"),
    "ReduceMin": plain("REDUCE_MIN"),
    "ReduceProd": plain("REDUCE_PROD"),
    "ReduceSum": plain("SUM"),
    "ReduceSumSquare": of_each("SUM", "SQUARE"),
}
