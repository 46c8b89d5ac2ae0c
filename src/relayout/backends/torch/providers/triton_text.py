"""What kernels written in Triton have in common: how they enter a module, and how they end."""

from __future__ import annotations

import math
from importlib.util import find_spec

from relayout.backends.torch.program.draft import ModuleDraft
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.providers.library_group import (
    Activation,
    Curve,
    LibraryGroup,
)
from relayout.backends.torch.providers.site import Site

IMPORTS = "import triton\nimport triton.language as tl"
TRITON_NAMES = ("triton", "tl")
LEAST_LENGTH = 16
"""Tensor cores multiply matrices of at least this length."""


def has_triton() -> bool:
    """Whether Triton is installed, as it is wherever torch runs on CUDA."""
    return find_spec("triton") is not None


def takes_triton(site: Site) -> bool:
    """Whether kernels in Triton are worth trying: products of float32 would be rounded more."""
    return site.is_cuda and not site.is_float32 and has_triton()


def power_of(length: int) -> int:
    """The least length that a tile can have for so many numbers."""
    return max(LEAST_LENGTH, 1 << (length - 1).bit_length())


def kernel_named(hint: str, text: str, draft: ModuleDraft) -> str:
    """The name of a kernel that the module will contain, `NAME` in `text`."""
    if IMPORTS not in draft.functions:
        draft.names.reserve(TRITON_NAMES)
        draft.functions.append(IMPORTS)
    return draft.function(hint, text)


GELU = """\
u = tl.abs({sum}) * 0.7071067811865476
t = 1.0 / (1.0 + 0.3275911 * u)
p = 1.061405429 * t - 1.453152027
p = ((p * t + 1.421413741) * t - 0.284496736) * t + 0.254829592
p = 0.5 * p * t * tl.exp(-u * u)
{sum} = {sum} * tl.where({sum} < 0.0, p, 1.0 - p)"""
"""By formula 7.1.26 of Abramowitz and Stegun; its error of 1.5e-7 is less than halves can hold."""

CURVE_TEXTS = {
    Curve.GELU: GELU,
    Curve.SILU: "{sum} = {sum} / (1.0 + tl.exp(-{sum}))",
    Curve.SIGMOID: "{sum} = 1.0 / (1.0 + tl.exp(-{sum}))",
    Curve.HARD_SWISH: (
        "{sum} = {sum} * tl.minimum(tl.maximum({sum} + 3.0, 0.0), 6.0) * 0.16666666666666666"
    ),
}


def activated(total: str, activation: Activation) -> list[str]:
    """Statements that apply the activation to a sum in float32."""
    if activation.curve is not None:
        return CURVE_TEXTS[activation.curve].format(sum=total).splitlines()
    lines = []
    if activation.low > -math.inf:
        lines.append(f"{total} = tl.maximum({total}, {literal(activation.low)})")
    if activation.high < math.inf:
        lines.append(f"{total} = tl.minimum({total}, {literal(activation.high)})")
    return lines


def given_names(group: LibraryGroup) -> list[str]:
    """The parameters a kernel has beside its factors."""
    names = {"bias": group.bias, "residual": group.residual}
    return [name for name, value in names.items() if value is not None]
