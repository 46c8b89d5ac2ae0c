"""Samples of every operator that has a rule, one file per family as in `relayout.ops`."""

from __future__ import annotations

from tests.samples import (
    axis,
    broadcasting,
    contrib,
    control,
    convolution,
    elementwise,
    indexing,
    movement,
    normalization,
    pooling,
    product,
    quantization,
    recurrent,
    reduction,
    source,
    views,
)
from tests.samples.sample import Sample

ALL: list[Sample] = [
    sample
    for family in (
        elementwise,
        broadcasting,
        axis,
        reduction,
        indexing,
        views,
        movement,
        normalization,
        convolution,
        pooling,
        product,
        quantization,
        recurrent,
        control,
        contrib,
        source,
    )
    for sample in family.SAMPLES
]
