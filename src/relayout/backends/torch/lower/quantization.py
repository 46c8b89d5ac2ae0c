"""Quantisation, and products of quantised numbers, which are exact."""

from __future__ import annotations

import onnx_ir as ir

from relayout.backends.torch.lower.convolution import convolution_of
from relayout.backends.torch.program.call import Call, Lowering, Several
from relayout.backends.torch.program.dtypes import limits_of
from relayout.backends.torch.runtime import quantization as runtime
from relayout.backends.torch.runtime.numbers import to_float4


def quantize(call: Call) -> str:
    dtype = call.dtype(2) if call.has(2) else None
    named = call.integer("output_dtype", 0)
    dtype = dtype or (ir.DataType(named) if named else ir.DataType.UINT8)
    if dtype == ir.DataType.FLOAT4E2M1:
        scaled = call.helper(runtime.scaled, call.tensor(0), call.tensor(1), *_axis_and_block(call))
        return call.helper(to_float4, scaled, call.torch_dtype(dtype))
    given = (call.tensor(0), call.tensor(1), call.optional(2), call.torch_dtype(dtype))
    limits = None if dtype.name.startswith("FLOAT") else limits_of(dtype)
    return call.helper(runtime.quantize, *given, limits, *_axis_and_block(call))


def _axis_and_block(call: Call) -> tuple[int, int]:
    return call.integer("axis", 1), call.integer("block_size", 0)


def dequantize(call: Call) -> str:
    given = (call.tensor(0), call.tensor(1), call.optional(2))
    text = call.helper(runtime.dequantize, *given, *_axis_and_block(call))
    named = call.integer("output_dtype", 0)
    return f"{text}.to({call.torch_dtype(named)})" if named else text


def dynamic_quantize(call: Call) -> Several:
    return Several(call.helper(runtime.dynamic_quantize, call.tensor(0)), 3)


def matmul_integer(call: Call) -> str:
    first = call.helper(runtime.centred, call.tensor(0), call.optional(2), -2)
    second = call.helper(runtime.centred, call.tensor(1), call.optional(3), -1)
    return f"({first} @ {second}).to(torch.int32)"


def conv_integer(call: Call) -> str:
    first = call.helper(runtime.centred, call.tensor(0), call.optional(2), 0)
    second = call.helper(runtime.centred, call.tensor(1), call.optional(3), 0)
    return f"{_convolved(call, first, second, 1)}.to(torch.int32)"


def _convolved(call: Call, first: str, second: str, weight: int) -> str:
    window, groups = convolution_of(call, weight)
    if window.padding is None:
        first = call.let(window.padded(call, call.let(first, "centred")), "padded")
    last = f", groups={groups}" if groups != 1 else ""
    return f"F.conv{window.rank}d({first}, {second}{window.arguments()}{last})"


def qlinear_matmul(call: Call) -> str:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = call.tensors
    first = call.helper(runtime.centred, a, a_zero, -2)
    second = call.helper(runtime.centred, b, b_zero, -1)
    scales = (a_scale, b_scale, y_scale, y_zero)
    return call.helper(runtime.requantize, f"{first} @ {second}", *scales, "None", 1)


def qlinear_conv(call: Call) -> str:
    x, x_scale, x_zero, weight, w_scale, w_zero, y_scale, y_zero = call.tensors[:8]
    first = call.helper(runtime.centred, x, x_zero, 0)
    second = call.helper(runtime.centred, weight, w_zero, 0)
    product = _convolved(call, first, second, 3)
    scales = (x_scale, w_scale, y_scale, y_zero, call.optional(8))
    return call.helper(runtime.requantize, product, *scales, len(call.shape(3) or "12") - 1)


LOWERINGS: dict[str, Lowering] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
    "QLinearMatMul": qlinear_matmul,
    "QLinearConv": qlinear_conv,
}
