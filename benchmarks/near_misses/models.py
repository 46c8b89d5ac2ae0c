"""Random small models."""

from __future__ import annotations

import random

import onnx

from benchmarks.near_misses.bodies import branches, function, loop
from benchmarks.near_misses.build import Builder, UnfitError
from benchmarks.near_misses.places import expanded, padded, parted, placed, reshaped, resized, view
from benchmarks.near_misses.steps import (
    STEPS,
    Step,
    binary,
    choice,
    conv,
    conv_transpose,
    einsum,
    gemm,
    head,
    normalised,
    pool,
    product,
    quantised,
    reduced,
    slope,
    transposed,
    walked,
)

WEIGHTED = (*STEPS, (1, branches), (1, loop), (1, function))
REPEATED = (expanded, walked, walked, walked, parted, transposed, loop)
CAPTURED = (transposed, transposed, binary, product, einsum, gemm, reduced, choice)
WINDOWS = (conv, conv_transpose, pool, padded, resized, transposed, reshaped, reduced)
PIECES = (reshaped, reshaped, transposed, parted, placed, reduced, normalised, binary, view)
CONSTANTS = (slope, product, gemm, conv, normalised, quantised, binary, transposed)
ENLARGED = (head, head, head, resized, transposed, placed, parted, binary, conv)
THEMES: tuple[tuple[Step, ...], ...] = (REPEATED, CAPTURED, WINDOWS, PIECES, CONSTANTS, ENLARGED)
LENGTHS = (1, 2, 3, 4, 6)


def random_model(rng: random.Random) -> onnx.ModelProto:
    """A model of 5 to 12 nodes, many of whose lengths are equal.

    Most models have a few kinds of steps only, so that these meet in many ways.
    """
    builder = Builder(rng)
    _inputs(builder)
    steps, weights = _kinds(rng)
    wanted = rng.randrange(5, 11)
    for _ in range(8 * wanted):
        if len(builder.nodes) >= wanted:
            break
        step = rng.choices(steps, weights)[0]
        try:
            step(builder)
        except UnfitError:
            continue
    return _opened(rng, builder.model())


def _kinds(rng: random.Random) -> tuple[list[Step], list[int]]:
    """Kinds of steps and how often each is drawn."""
    if rng.random() < 0.6:
        theme = list(rng.choice(THEMES))
        return theme, [1] * len(theme)
    few = rng.sample(WEIGHTED, rng.choice([5, 8, len(WEIGHTED)]))
    return [step for _, step in few], [weight for weight, _ in few]


def _inputs(builder: Builder) -> None:
    rng = builder.rng
    rank, length = rng.choice([2, 2, 3, 3, 4, 4]), rng.choice([2, 2, 3, 4])
    shape = [length] * rank
    if rng.random() < 0.1:
        shape = [1] * rank
    elif rng.random() < 0.3:
        shape = [rng.choice(LENGTHS) for _ in shape]
    elif rng.random() < 0.4:
        for axis in rng.sample(range(rank), rng.choice([1, 2, 2])):
            shape[axis] = 1
    for _ in range(rng.choice([1, 2, 2, 3])):
        builder.input(shape)
        if rng.random() < 0.3:
            builder.input(shape[rng.randrange(rank) :])


def _opened(rng: random.Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with some lengths of inputs open: one name for each length that is equal."""
    if rng.random() > 0.15:
        return model
    names: dict[tuple[int, int], str] = {}
    axis = rng.randrange(2)
    for port in model.graph.input:
        for i, dim in enumerate(port.type.tensor_type.shape.dim):
            if i == axis and dim.dim_value > 1:
                dim.dim_param = names.setdefault((i, dim.dim_value), f"N{len(names)}")
    if names:
        for port in model.graph.output:
            port.type.tensor_type.ClearField("shape")
    return model
