"""Steps of random models that move elements: views, and parts of axes put elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.near_misses.build import Builder, UnfitError


def factors_of(n: int) -> list[tuple[int, int]]:
    return [(k, n // k) for k in range(1, n + 1) if n % k == 0]


def reshaped(b: Builder) -> None:
    name = b.pick()
    shape = list(b.shape(name))
    way = b.rng.random()
    if way < 0.4 and len(shape) > 1:
        at = b.rng.randrange(len(shape) - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif way < 0.75 and shape:
        at = b.rng.randrange(len(shape))
        shape[at : at + 1] = b.rng.choice(factors_of(shape[at]))
    else:
        parts: list[int] = []
        left = math.prod(shape)
        while left > 1 and len(parts) < 3:
            one, left = b.rng.choice(factors_of(left))
            parts.append(one)
        shape = [*parts, left]
    if b.rng.random() < 0.3 and shape:
        shape[b.rng.randrange(len(shape))] = -1
    b.add("Reshape", [name, b.constant(np.array(shape, np.int64))])


def view(b: Builder) -> None:
    way = b.rng.randrange(6)
    if way == 0:
        name = b.pick(range(4))
        axis = b.rng.randrange(-len(b.shape(name)) - 1, len(b.shape(name)) + 1)
        b.add("Unsqueeze", [name, b.constant(np.array([axis]))])
    elif way == 1:
        units = [n for n in b.values() if 1 in b.shape(n)]
        if not units:
            raise UnfitError
        name = b.rng.choice(units)
        axes = [i for i, n in enumerate(b.shape(name)) if n == 1]
        b.add("Squeeze", [name, b.constant(np.array([b.rng.choice(axes)]))])
    elif way == 2:
        name = b.pick(range(1, 4))
        b.add("Flatten", [name], axis=b.rng.randrange(len(b.shape(name)) + 1))
    elif way == 3:
        expanded(b)
    elif way == 4:
        name = b.pick(range(1, 5))
        repeats = [b.rng.choice([1, 1, 2, 3]) for _ in b.shape(name)]
        b.add("Tile", [name, b.constant(np.array(repeats))])
    else:
        blocks(b)


def expanded(b: Builder) -> None:
    name = b.pick(range(4))
    if b.rng.random() < 0.5 and b.shape(name):
        axes = b.constant(np.array([b.rng.randrange(len(b.shape(name)))]))
        name = b.add("ReduceMean", [name, axes])
    shape = [n if n > 1 else b.rng.choice([1, 2, 3]) for n in b.shape(name)]
    if b.rng.random() < 0.3:
        shape = [b.rng.choice([2, 3]), *shape]
    b.add("Expand", [name, b.constant(np.array(shape, np.int64))])


def blocks(b: Builder) -> None:
    name = b.pick([4])
    if b.rng.random() < 0.5:
        b.add("DepthToSpace", [name], blocksize=2, mode=b.rng.choice(["DCR", "CRD"]))
    else:
        b.add("SpaceToDepth", [name], blocksize=2)


def placed(b: Builder) -> None:
    name = b.pick(range(1, 5))
    rank = len(b.shape(name))
    axis = b.rng.randrange(-rank, rank)
    alike = [n for n in b.values() if b.shape(n) == b.shape(name)]
    others = [b.rng.choice(alike) for _ in range(b.rng.randrange(1, 3))]
    if b.rng.random() < 0.3:
        others[0] = b.drawn(b.shape(name))
    inputs = [name, *others]
    b.rng.shuffle(inputs)
    b.add("Concat", inputs, axis=axis)


def parted(b: Builder) -> None:
    name = b.pick(range(1, 5))
    rank = len(b.shape(name))
    axis = b.rng.randrange(rank)
    length = b.shape(name)[axis]
    way = b.rng.randrange(3)
    if way == 0 and length > 1:
        first = b.rng.randrange(1, length)
        b.add("Split", [name, b.constant(np.array([first, length - first]))], 2, axis=axis)
    elif way == 1:
        start, end = sorted(b.rng.sample(range(length + 1), 2))
        step = b.rng.choice([1, 1, 2])
        bounds = [[start], [end], [axis], [step]]
        if b.rng.random() < 0.2:
            bounds = [[-1], [-100], [axis], [-1]]
        b.add("Slice", [name, *(b.constant(np.array(one)) for one in bounds)])
    else:
        count = b.rng.randrange(1, 4)
        numbers: Any = [b.rng.randrange(-length, length) for _ in range(count)]
        if b.rng.random() < 0.2:
            numbers = numbers[0]
        elif b.rng.random() < 0.2:
            numbers = [numbers, numbers[::-1]]
        b.add("Gather", [name, b.constant(np.array(numbers))], axis=axis)


def found(b: Builder) -> None:
    """Elements found by numbers that are computed."""
    name = b.pick(range(2, 4))
    rank = len(b.shape(name))
    axis = b.rng.randrange(rank)
    number = b.add("ArgMax", [name], axis=axis, keepdims=b.rng.randrange(2))
    way = b.rng.randrange(3)
    if way == 0:
        b.add("Gather", [name, number], axis=axis)
    elif way == 1:
        b.add("GatherElements", [name, number], axis=axis)
    else:
        b.add("Trilu", [name], upper=b.rng.randrange(2))


def padded(b: Builder) -> None:
    name = b.pick(range(1, 5))
    rank = len(b.shape(name))
    pads = [b.rng.choice([0, 0, 1, 2]) for _ in range(2 * rank)]
    if b.rng.random() < 0.4:
        pads = [0] * rank + [b.rng.choice([1, 2])] * rank
    mode = b.rng.choice(["constant", "constant", "edge", "reflect", "wrap"])
    inputs = [name, b.constant(np.array(pads))]
    if mode == "constant" and b.rng.random() < 0.5:
        inputs.append(b.constant(np.array(b.rng.choice([0.0, 1.5]))))
    b.add("Pad", inputs, mode=mode)


def resized(b: Builder) -> None:
    name = b.pick([3, 4])
    rank = len(b.shape(name))
    mode = b.rng.choice(["nearest", "linear"])
    place = b.rng.choice(["half_pixel", "asymmetric", "align_corners"])
    given: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": place}
    if mode == "nearest":
        given["nearest_mode"] = b.rng.choice(["floor", "round_prefer_floor", "ceil"])
    if b.rng.random() < 0.5:
        scales = np.array(
            [1.0, 1.0, *(b.rng.choice([1.0, 2.0, 2.0, 1.5]) for _ in range(rank - 2))]
        )
        b.add("Resize", [name, "", b.constant(scales.astype(np.float32))], **given)
    else:
        sizes = [*b.shape(name)[:2], *(b.rng.choice([2, 3, 4]) for _ in range(rank - 2))]
        b.add("Resize", [name, "", "", b.constant(np.array(sizes, np.int64))], **given)
