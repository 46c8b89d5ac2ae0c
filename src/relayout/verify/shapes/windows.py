"""Shapes of convolutions and pools."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from relayout.verify.proof.lengths import Length, plus, times
from relayout.verify.shapes.symbolic import OpenShape, Shapes, attribute, integers, text


def conv(found: Shapes, node: onnx.NodeProto, weight_at: int = 1, bias_at: int = 2) -> None:
    dims, weight = found.of_input(node, 0), found.of_input(node, weight_at)
    if dims is None or weight is None:
        return
    channels, bias = weight[1], found.of_input(node, bias_at)
    if channels is not None:
        found.equal(dims[1], times(channels, attribute(node, "group", 1)))
    if bias:
        found.equal(bias[0], weight[0])
    kernel = _kernel(found, node, weight)
    found.dims[node.output[0]] = [dims[0], weight[0], *_windows(node, dims[2:], kernel)]


def _kernel(found: Shapes, node: onnx.NodeProto, weight: OpenShape) -> OpenShape:
    """The lengths of a window, which may be stated besides those of the weight."""
    stated = integers(node, "kernel_shape")
    if stated is None:
        return weight[2:]
    found.same(weight[2:], list(stated))
    return list(stated)


def integer_conv(found: Shapes, node: onnx.NodeProto) -> None:
    """Zero points follow the weight, and there is no bias."""
    conv(found, node, bias_at=len(node.input))


def quantised_conv(found: Shapes, node: onnx.NodeProto) -> None:
    conv(found, node, weight_at=3, bias_at=8)


def conv_transpose(found: Shapes, node: onnx.NodeProto) -> None:
    dims, weight = found.of_input(node, 0), found.of_input(node, 1)
    if dims is None or weight is None:
        return
    found.equal(dims[1], weight[0])
    channels = None if weight[1] is None else times(weight[1], attribute(node, "group", 1))
    kernel = _kernel(found, node, weight)
    spatial: OpenShape = [None] * (len(dims) - 2)
    if text(node, "auto_pad", "NOTSET") == "NOTSET" and integers(node, "output_shape") is None:
        spatial = _spread(node, dims[2:], kernel)
    found.dims[node.output[0]] = [dims[0], channels, *spatial]


def _spread(node: onnx.NodeProto, dims: OpenShape, kernel: OpenShape) -> OpenShape:
    """How far windows reach that begin at each place, some steps apart."""
    rank = len(dims)
    steps = integers(node, "strides") or [1] * rank
    apart = integers(node, "dilations") or [1] * rank
    pads = integers(node, "pads") or [0] * 2 * rank
    more = integers(node, "output_padding") or [0] * rank
    found: OpenShape = []
    for i, (dim, size) in enumerate(zip(dims, kernel, strict=True)):
        if dim is None or not isinstance(size, int):
            found.append(None)
        else:
            border = more[i] + apart[i] * (size - 1) + 1 - steps[i] - pads[i] - pads[i + rank]
            found.append(plus(times(dim, steps[i]), border))
    return found


def pool(found: Shapes, node: onnx.NodeProto) -> None:
    """Windows that only begin inside are counted by rules of their own, which are not read."""
    dims, kernel = found.of_input(node, 0), integers(node, "kernel_shape")
    if dims is not None and kernel is not None and not attribute(node, "ceil_mode", 0):
        for name in node.output:
            found.dims[name] = [*dims[:2], *_windows(node, dims[2:], list(kernel))]


def _windows(node: onnx.NodeProto, dims: OpenShape, kernel: OpenShape) -> OpenShape:
    """How many windows there are along each axis."""
    rank = len(dims)
    steps = integers(node, "strides") or [1] * rank
    apart = integers(node, "dilations") or [1] * rank
    pads = integers(node, "pads") or [0] * 2 * rank
    automatic = text(node, "auto_pad", "NOTSET")
    found: OpenShape = []
    for i, (dim, size) in enumerate(zip(dims, kernel, strict=True)):
        if dim is None or not isinstance(size, int):
            found.append(None)
        elif automatic.startswith("SAME"):
            found.append(_quotient_up(dim, steps[i]))
        else:
            padded = 0 if automatic == "VALID" else pads[i] + pads[i + rank]
            places = plus(dim, padded - apart[i] * (size - 1))
            found.append(_quotient_up(places, steps[i]))
    return found


def _quotient_up(dim: Length, step: int) -> Length | None:
    if step == 1:
        return dim
    return -(-dim // step) if isinstance(dim, int) else None


def global_pool(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is not None:
        found.dims[node.output[0]] = [*dims[:2], *[1] * (len(dims) - 2)]


RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), global_pool),
    "Conv": conv,
    "ConvInteger": integer_conv,
    "ConvTranspose": conv_transpose,
    "QLinearConv": quantised_conv,
}
