"""All operators by domain and name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.verify.field.operators import (
    activation,
    arithmetic,
    attention,
    contraction,
    contrib,
    control,
    convolution,
    indexing,
    logic,
    movement,
    normalization,
    ordering,
    pooling,
    quantization,
    recurrent,
    reduction,
    resizing,
    scattering,
    sequences,
    sources,
    spectra,
    views,
)

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldKernel

# Operators that move elements, whatever these are.
_MOVING = (indexing, movement, scattering, sequences, sources, views)
_COMPUTING = (
    activation,
    arithmetic,
    attention,
    contraction,
    control,
    convolution,
    logic,
    normalization,
    ordering,
    pooling,
    quantization,
    recurrent,
    reduction,
    resizing,
    spectra,
)

MOVEMENTS: dict[tuple[str, str], FieldKernel] = {
    ("", name): kernel for family in _MOVING for name, kernel in family.KERNELS.items()
}
KERNELS: dict[tuple[str, str], FieldKernel] = {
    ("", name): kernel for family in _COMPUTING for name, kernel in family.KERNELS.items()
} | {(contrib.DOMAIN, name): kernel for name, kernel in contrib.KERNELS.items()}
