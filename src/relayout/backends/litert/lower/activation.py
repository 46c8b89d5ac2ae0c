"""Activations: as builtins, or by the steps that define them."""

from __future__ import annotations

import numpy as np

from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.backends.litert.lower.elementwise import unary

CLIPS = {
    (0.0, np.inf): "RELU",
    (0.0, 6.0): "RELU6",
    (-1.0, 1.0): "RELU_N1_TO_1",
    (0.0, 1.0): "RELU_0_TO_1",
}


def clip(call: LiteCall) -> FlatTensor:
    tensor, build = call.tensor(0), call.build
    low = _bound(call, "min", 1, -np.inf)
    high = _bound(call, "max", 2, np.inf)
    is_float = tensor.dtype.kind == "f"
    if isinstance(low, float) and isinstance(high, float) and is_float and (low, high) in CLIPS:
        return build.unary(CLIPS[low, high], tensor)
    for builtin, bound in (("MAXIMUM", low), ("MINIMUM", high)):
        if isinstance(bound, float):
            if np.isfinite(bound):
                tensor = build.with_scalar(builtin, tensor, bound)
        else:
            tensor = build.broadcasting(builtin, [tensor, bound])
    return tensor


def _bound(call: LiteCall, name: str, index: int, default: float) -> float | FlatTensor:
    """A bound: from an attribute, a constant, or a tensor."""
    if name in call.view.node.attributes:
        return call.number(name, default)
    if not call.has(index):
        return default
    known = call.known(index)
    return call.tensor(index) if known is None else float(known.reshape(-1)[0])


def leaky_relu(call: LiteCall) -> FlatTensor:
    return call.build.unary("LEAKY_RELU", call.tensor(0), alpha=call.number("alpha", 0.01))


def elu(call: LiteCall) -> FlatTensor:
    alpha, tensor = call.number("alpha", 1.0), call.tensor(0)
    if alpha == 1.0:
        return call.build.unary("ELU", tensor)
    return _elu(call, alpha, 1.0)


def selu(call: LiteCall) -> FlatTensor:
    gamma = call.number("gamma", 1.05070102214813232421875)
    return _elu(call, call.number("alpha", 1.67326319217681884765625), gamma)


def _elu(call: LiteCall, alpha: float, gamma: float) -> FlatTensor:
    """Gamma · (max(x, 0) + alpha · (exp(min(x, 0)) - 1))"""
    build, tensor = call.build, call.tensor(0)
    low = build.unary("ELU", build.with_scalar("MINIMUM", tensor, 0.0))
    both = build.broadcasting(
        "ADD", [build.unary("RELU", tensor), build.with_scalar("MUL", low, alpha)]
    )
    return both if gamma == 1.0 else build.with_scalar("MUL", both, gamma)


def hard_sigmoid(call: LiteCall) -> FlatTensor:
    build = call.build
    scaled = build.with_scalar("MUL", call.tensor(0), call.number("alpha", 0.2))
    return build.unary("RELU_0_TO_1", build.with_scalar("ADD", scaled, call.number("beta", 0.5)))


def softplus(call: LiteCall) -> FlatTensor:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    build, tensor = call.build, call.tensor(0)
    small = build.unary("EXP", build.unary("NEG", build.unary("ABS", tensor)))
    tail = build.unary("LOG", build.with_scalar("ADD", small, 1.0))
    return build.broadcasting("ADD", [build.unary("RELU", tensor), tail])


def softsign(call: LiteCall) -> FlatTensor:
    build, tensor = call.build, call.tensor(0)
    below = build.with_scalar("ADD", build.unary("ABS", tensor), 1.0)
    return build.broadcasting("DIV", [tensor, below])


def mish(call: LiteCall) -> FlatTensor:
    build = call.build
    return build.broadcasting("MUL", [call.tensor(0), build.unary("TANH", softplus(call))])


def gelu(call: LiteCall) -> FlatTensor:
    is_tanh = call.view.string("approximate", "none") == "tanh"
    return call.build.unary("GELU", call.tensor(0), approximate=is_tanh)


def swish(call: LiteCall) -> FlatTensor:
    build, tensor = call.build, call.tensor(0)
    alpha = call.number("alpha", 1.0)
    scaled = tensor if alpha == 1.0 else build.with_scalar("MUL", tensor, alpha)
    return build.broadcasting("MUL", [tensor, build.unary("LOGISTIC", scaled)])


def prelu(call: LiteCall) -> FlatTensor:
    """The builtin has slopes for all axes but the first."""
    build, tensor, slope = call.build, call.tensor(0), call.tensor(1)
    lengths = (1,) * (tensor.rank - slope.rank) + slope.shape
    if tensor.rank == 4 and lengths[0] == 1 and slope.data is not None:
        return build.put("PRELU", [tensor, build.reshape(slope, lengths[1:])], tensor.shape)
    low = build.with_scalar("MINIMUM", tensor, 0.0)
    return build.broadcasting(
        "ADD", [build.unary("RELU", tensor), build.broadcasting("MUL", [low, slope])]
    )


def softmax(call: LiteCall) -> FlatTensor:
    """Up to opset 12 all axes from `axis` on are one."""
    tensor, build = call.tensor(0), call.build
    is_old = call.view.version < 13
    axis = call.axis(1 if is_old else -1)
    if is_old and axis != tensor.rank - 1:
        flat = build.reshape(
            tensor, (int(np.prod(tensor.shape[:axis])), int(np.prod(tensor.shape[axis:])))
        )
        return build.reshape(_along_last(call, flat), tensor.shape)
    if axis == tensor.rank - 1:
        return _along_last(call, tensor)
    return _along(call, tensor, axis)


def _along_last(call: LiteCall, tensor: FlatTensor) -> FlatTensor:
    build = call.build
    flat = tensor
    if tensor.rank > 4 or tensor.rank == 1:
        flat = build.reshape(tensor, (int(np.prod(tensor.shape[:-1])), tensor.shape[-1]))
    if call.op_type == "LogSoftmax":
        return build.reshape(build.put("LOG_SOFTMAX", [flat], flat.shape), tensor.shape)
    return build.reshape(build.put("SOFTMAX", [flat], flat.shape, beta=1.0), tensor.shape)


def _along(call: LiteCall, tensor: FlatTensor, axis: int) -> FlatTensor:
    """Along an axis that is not the last, by its steps: no Transpose is needed."""
    build = call.build
    shifted = build.broadcasting("SUB", [tensor, build.reduce("REDUCE_MAX", tensor, [axis])])
    powers = build.unary("EXP", shifted)
    total = build.reduce("SUM", powers, [axis])
    if call.op_type == "LogSoftmax":
        return build.broadcasting("SUB", [shifted, build.unary("LOG", total)])
    return build.broadcasting("DIV", [powers, total])


LOWERINGS: dict[str, LiteLowering] = {
    "Clip": clip,
    "Elu": elu,
    "Gelu": gelu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": unary("HARD_SWISH"),
    "LeakyRelu": leaky_relu,
    "LogSoftmax": softmax,
    "Mish": mish,
    "PRelu": prelu,
    "Relu": unary("RELU"),
    "Selu": selu,
    "Sigmoid": unary("LOGISTIC"),
    "Softmax": softmax,
    "Softplus": softplus,
    "Softsign": softsign,
    "Swish": swish,
    "Tanh": unary("TANH"),
}
