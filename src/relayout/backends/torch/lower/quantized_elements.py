"""Operators of ONNX Runtime between numbers in bytes: computed in floats and quantised again."""

from __future__ import annotations

from collections.abc import Callable

from relayout.backends.torch.lower.pooling import options, window_and_ceil
from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.program.draft import Helper
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import quantization as runtime
from relayout.backends.torch.runtime import window as pools

SOFTMAX_OF_ONE_AXIS = 13
"""Since this opset a softmax is taken along one axis, before along all from that one on."""


def dequantized(call: Call, index: int) -> str:
    """The operand with this index in floats; its scale and its zero point come after it."""
    given = (call.tensor(index), call.tensor(index + 1), call.optional(index + 2))
    return call.helper(runtime.dequantize, *given, 0, 0)


def requantized(call: Call, text: str, index: int, helper: Helper = runtime.requantize_like) -> str:
    """Floats in bytes, of which the operand with this index is the scale."""
    return call.helper(helper, text, call.tensor(index), _zero(call, index + 1))


def _zero(call: Call, index: int) -> str:
    if call.has(index):
        return call.tensor(index)
    return f"torch.zeros((), dtype={call.tensor(0)}.dtype)"


def pair(helper: Helper) -> Lowering:
    """Two operands and the result, each with its scale and its zero point."""

    def lower(call: Call) -> str:
        numbers = [call.tensor(0), call.tensor(1), _zero(call, 2)]
        others = [call.tensor(3), call.tensor(4), _zero(call, 5)]
        return call.helper(helper, *numbers, *others, call.tensor(6), _zero(call, 7))

    return lower


def unary(
    compute: Callable[[Call, str], str], helper: Helper = runtime.requantize_like
) -> Lowering:
    return lambda call: requantized(call, compute(call, dequantized(call, 0)), 3, helper)


def leaky_relu(call: Call, text: str) -> str:
    return f"F.leaky_relu({text}, {literal(call.real('alpha', 0.01))})"


def softmax(call: Call, text: str) -> str:
    axis = call.integer("axis", -1)
    if call.integer("opset", 0) >= SOFTMAX_OF_ONE_AXIS:
        return f"torch.softmax({text}, {axis})"
    return f"torch.softmax({text}.flatten({axis}), -1).reshape({call.tensor(0)}.shape)"


def where(call: Call) -> str:
    chosen = f"torch.where({call.tensor(0)}, {dequantized(call, 1)}, {dequantized(call, 4)})"
    return requantized(call, chosen, 7)


def over_space(call: Call) -> str:
    """The mean over all axes but the first and that of the channels."""
    rank = call.rank(0)
    if rank is None:
        raise call.refusal("has an operand of unknown rank")
    axes = range(1, rank - 1) if call.integer("channels_last", 0) else range(2, rank)
    numbers = [call.tensor(0), call.tensor(1), _zero(call, 2)]
    return call.helper(runtime.quantized_mean, *numbers, call.tensor(3), _zero(call, 4), list(axes))


def average_pool(call: Call, text: str) -> str:
    counts_padding = bool(call.integer("count_include_pad", 0))
    if counts_padding and call.integer("ceil_mode", 0):
        raise call.refusal("counts what lies beyond its padding")
    return _channels_first(
        call,
        text,
        lambda first: call.helper(pools.average_pool, first, *_windows(call), counts_padding),
    )


def max_pool_channels_last(call: Call) -> str:
    first = f"{call.tensor(0)}.movedim(-1, 1)"
    return f"{call.helper(pools.max_pool, first, *_windows(call))}.movedim(1, -1)"


def _channels_first(call: Call, text: str, compute: Callable[[str], str]) -> str:
    if not call.integer("channels_last", 0):
        return compute(text)
    return f"{compute(f'{text}.movedim(-1, 1)')}.movedim(1, -1)"


def _windows(call: Call) -> tuple[object, ...]:
    window, ceil = window_and_ceil(call)
    if window.same:
        raise call.refusal("has automatic padding")
    return options(call, window, ceil)


LOWERINGS: dict[str, Lowering] = {
    "NhwcMaxPool": max_pool_channels_last,
    "QLinearAdd": pair(runtime.quantized_sum),
    "QLinearAveragePool": unary(average_pool, runtime.rounded_from),
    "QLinearGlobalAveragePool": over_space,
    "QLinearLeakyRelu": unary(leaky_relu),
    "QLinearMul": pair(runtime.quantized_product),
    "QLinearSigmoid": unary(lambda _, text: f"torch.sigmoid({text})"),
    "QLinearSoftmax": unary(softmax),
    "QLinearWhere": where,
}
