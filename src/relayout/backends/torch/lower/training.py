"""Steps of optimisers, as models that train themselves have them."""

from __future__ import annotations

from relayout.backends.torch.program.call import Call, Lowering, Several
from relayout.backends.torch.program.draft import Helper
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import training as runtime

DOMAIN = "ai.onnx.preview.training"


def _real(call: Call, name: str, default: float) -> str:
    return literal(call.real(name, default))


def _steps(call: Call, helper: Helper, **options: object) -> Several:
    return Several(call.helper(helper, *call.tensors, **options), call.results)


def adagrad(call: Call) -> Several:
    return _steps(
        call,
        runtime.adagrad,
        decay=_real(call, "decay_factor", 0.0),
        norm=_real(call, "norm_coefficient", 0.0),
        least=_real(call, "epsilon", 1e-6),
    )


def adam(call: Call) -> Several:
    return _steps(
        call,
        runtime.adam,
        alpha=_real(call, "alpha", 0.9),
        beta=_real(call, "beta", 0.999),
        norm=_real(call, "norm_coefficient", 0.0),
        norm_after=_real(call, "norm_coefficient_post", 0.0),
        least=_real(call, "epsilon", 1e-6),
    )


def momentum(call: Call) -> Several:
    return _steps(
        call,
        runtime.momentum,
        alpha=_real(call, "alpha", 0.0),
        beta=_real(call, "beta", 0.0),
        norm=_real(call, "norm_coefficient", 0.0),
        nesterov=call.string("mode", "standard") == "nesterov",
    )


LOWERINGS: dict[str, Lowering] = {"Adagrad": adagrad, "Adam": adam, "Momentum": momentum}
