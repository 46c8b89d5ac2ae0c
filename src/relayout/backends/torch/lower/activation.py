"""Activation functions."""

from __future__ import annotations

from relayout.backends.torch.lower.elementwise import unary
from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import activation as runtime


def real(call: Call, name: str, default: float) -> str:
    return literal(call.real(name, default))


def with_alpha(form: str, default: float) -> Lowering:
    return lambda call: form.format(call.tensor(0), real(call, "alpha", default))


def selu(call: Call) -> str:
    alpha, gamma = call.real("alpha", 1.67326319), call.real("gamma", 1.05070102)
    if abs(alpha - 1.67326324) < 1e-6 and abs(gamma - 1.05070099) < 1e-6:
        return f"F.selu({call.tensor(0)})"
    return call.helper(runtime.selu, call.tensor(0), alpha, gamma)


def hard_sigmoid(call: Call) -> str:
    alpha, beta = call.real("alpha", 0.2), call.real("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-7 and beta == 0.5:
        return f"F.hardsigmoid({call.tensor(0)})"
    return f"({call.tensor(0)} * {literal(alpha)} + {literal(beta)}).clamp(0, 1)"


def gelu(call: Call) -> str:
    approximate = call.string("approximate", "none")
    return f"F.gelu({call.tensor(0)}, approximate={approximate!r})"


def shrink(call: Call) -> str:
    bias, bound = real(call, "bias", 0.0), real(call, "lambd", 0.5)
    return call.helper(runtime.shrink, call.tensor(0), bias, bound)


def swish(call: Call) -> str:
    alpha, x = call.real("alpha", 1.0), call.tensor(0)
    return f"F.silu({x})" if alpha == 1 else f"{x} * torch.sigmoid({x} * {literal(alpha)})"


def clip(call: Call) -> str:
    """The bounds are attributes in old opsets and operands, perhaps left out, in new ones."""
    text = call.tensor(0)
    bounds = [_bound(call, index, name) for index, name in ((1, "min"), (2, "max"))]
    given = [bound for bound in bounds if bound]
    are_numbers = [not bound.partition("=")[2].replace(".", "_").isidentifier() for bound in given]
    if len(set(are_numbers)) < 2:
        return f"torch.clamp({text}, {', '.join(given)})" if given else text
    return f"torch.clamp(torch.clamp({text}, {given[0]}), {given[1]})"


def _bound(call: Call, index: int, name: str) -> str:
    if name in call.view.node.attributes:
        return f"{name}={real(call, name, 0.0)}"
    return f"{name}={call.either(index, call.rank(0))}" if call.has(index) else ""


def p_relu(call: Call) -> str:
    """F.prelu takes one slope for each channel; other slopes are broadcast."""
    lengths, shape = call.shape(0), call.shape(1)
    if lengths is None or len(lengths) < 2 or shape != (lengths[1], *[1] * (len(lengths) - 2)):
        return call.helper(runtime.p_relu, *call.tensors)
    return f"F.prelu({call.tensor(0)}, {call.tensor(1)}.reshape(-1))"


LOWERINGS: dict[str, Lowering] = {
    "Relu": unary("torch.relu({})"),
    "Sigmoid": unary("torch.sigmoid({})"),
    "Tanh": unary("torch.tanh({})"),
    "Softplus": unary("F.softplus({})"),
    "Softsign": unary("F.softsign({})"),
    "HardSwish": unary("F.hardswish({})"),
    "Mish": unary("F.mish({})"),
    "LeakyRelu": with_alpha("F.leaky_relu({}, {})", 0.01),
    "Elu": with_alpha("F.elu({}, {})", 1.0),
    "Celu": with_alpha("F.celu({}, {})", 1.0),
    "ThresholdedRelu": with_alpha("F.threshold({}, {}, 0.0)", 1.0),
    "Selu": selu,
    "HardSigmoid": hard_sigmoid,
    "Gelu": gelu,
    "Shrink": shrink,
    "Swish": swish,
    "Clip": clip,
    "PRelu": p_relu,
}
