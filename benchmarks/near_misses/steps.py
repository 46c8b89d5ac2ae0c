"""Steps of random models: each adds a node or a few, of one family of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.near_misses.build import BOOL, DOUBLE, FLOAT, INT, Builder
from benchmarks.near_misses.places import (
    expanded,
    factors_of,
    found,
    padded,
    parted,
    placed,
    reshaped,
    resized,
    view,
)

Step = Callable[[Builder], object]
UNARY = ("Relu", "Neg", "Tanh", "Sigmoid", "Abs", "Sin", "Erf", "Softplus", "Round", "HardSwish")
SHAPED = ("LeakyRelu", "Elu", "HardSigmoid", "ThresholdedRelu")
BINARY = ("Add", "Sub", "Mul", "Max", "Min", "Add", "Sub", "Mean", "Sum")
REDUCTIONS = ("Sum", "Mean", "Max", "Min", "L1", "L2", "LogSumExp", "SumSquare", "Prod")


def unary(b: Builder) -> None:
    if b.rng.random() < 0.6:
        b.add(b.rng.choice(UNARY), [b.pick()])
    elif b.rng.random() < 0.5:
        b.add(b.rng.choice(SHAPED), [b.pick()], alpha=b.rng.choice([0.1, 0.3, 0.5]))
    else:
        low = b.constant(np.array(-0.5))
        b.add("Clip", [b.pick(), low, b.constant(np.array(b.rng.choice([0.5, 1.0])))])


def other_for(b: Builder, name: str) -> str:
    """An operand that is broadcast against the value."""
    shape = b.shape(name)
    way = b.rng.random()
    alike = [one for one in b.values() if b.shape(one) == shape]
    if way < 0.45 and alike:
        return b.rng.choice(alike)
    if way < 0.6 and len(shape) > 1:
        return transposed(b, name)
    if way < 0.7:
        return b.drawn([1] * b.rng.randrange(len(shape) + 1))
    kept = [n if b.rng.random() < 0.7 else 1 for n in shape]
    return b.drawn(kept[b.rng.randrange(len(kept) + 1) :] if b.rng.random() < 0.5 else kept)


def transposed(b: Builder, name: str | None = None) -> str:
    name = name or b.pick(range(2, 6))
    perm = list(range(len(b.shape(name))))
    b.rng.shuffle(perm)
    return b.add("Transpose", [name], perm=perm)


def binary(b: Builder) -> None:
    one = b.pick()
    pair = [one, other_for(b, one)]
    b.rng.shuffle(pair)
    b.add(b.rng.choice(BINARY), pair)


def quotient(b: Builder) -> None:
    one = b.pick()
    if b.rng.random() < 0.4:
        b.add("Div", [one, b.constant(np.array(b.rng.choice([2.0, 3.0, -0.7])))])
        return
    other = b.add("Exp", [b.add("Tanh", [other_for(b, one)])])
    b.add("Div", [one, other])


def choice(b: Builder) -> None:
    one = b.pick()
    test = b.add(b.rng.choice(["Greater", "Less", "GreaterOrEqual"]), [one, other_for(b, one)])
    b.add("Where", [test, one, other_for(b, one)])


def slope(b: Builder) -> None:
    one = b.pick()
    kept = [n if b.rng.random() < 0.7 else 1 for n in b.shape(one)]
    b.add("PRelu", [one, b.drawn(kept)])


def product(b: Builder) -> None:
    name = b.pick(range(1, 5))
    way = b.rng.random()
    last = b.shape(name)[-1]
    fits = [n for n in b.values(ranks=range(2, 5)) if b.shape(n)[-2] == last]
    if way < 0.45 and fits:
        other = b.rng.choice(fits)
    elif way < 0.6:
        other = transposed(b, name)
    else:
        other = b.drawn([last, b.rng.choice([last, last, 2])])
    pair = [name, other]
    if b.rng.random() < 0.2:
        pair.reverse()
    b.add("MatMul", pair)


def gemm(b: Builder) -> None:
    name = b.pick([2])
    m, k = b.shape(name)
    trans_a, trans_b = b.rng.randrange(2), b.rng.randrange(2)
    m, k = (k, m) if trans_a else (m, k)
    n = b.rng.choice([k, k, m, 2])
    fits = [v for v in b.values(ranks=[2]) if b.shape(v) == ((n, k) if trans_b else (k, n))]
    weight = b.rng.choice(fits) if fits and b.rng.random() < 0.5 else None
    weight = weight or b.drawn((n, k) if trans_b else (k, n))
    bias = b.drawn(b.rng.choice([(n,), (m, n), (m, 1), (1,), ()]))
    factors: dict[str, Any] = {
        "alpha": b.rng.choice([1.0, 1.0, 0.5]),
        "beta": b.rng.choice([1.0, 1.0, 2.0]),
    }
    b.add("Gemm", [name, weight, bias], transA=trans_a, transB=trans_b, **factors)


def einsum(b: Builder) -> None:
    one = b.pick(range(1, 4))
    letters, lengths = list("abcdef"), dict[str, int]()
    first = letters[: len(b.shape(one))]
    lengths |= dict(zip(first, b.shape(one), strict=True))
    found = b.values(ranks=range(1, 4))
    other = b.rng.choice(found) if b.rng.random() < 0.7 else one
    second = []
    for n in b.shape(other):
        free = [x for x in letters if x not in second and lengths.get(x, n) == n]
        letter = b.rng.choice(free[:3])
        lengths[letter] = n
        second.append(letter)
    kept = [x for x in dict.fromkeys([*first, *second]) if b.rng.random() < 0.6]
    b.rng.shuffle(kept)
    if b.rng.random() < 0.15:
        b.add(
            "Einsum", [one], equation=f"{''.join(first)}->{''.join(x for x in kept if x in first)}"
        )
        return
    b.add("Einsum", [one, other], equation=f"{''.join(first)},{''.join(second)}->{''.join(kept)}")


def _window(b: Builder, count: int, kernel: Sequence[int]) -> dict[str, Any]:
    given: dict[str, Any] = {"kernel_shape": list(kernel)}
    given["strides"] = [b.rng.choice([1, 1, 2]) for _ in range(count)]
    given["dilations"] = [b.rng.choice([1, 1, 1, 2]) for _ in range(count)]
    if b.rng.random() < 0.8:
        given["pads"] = [b.rng.choice([0, 1, 1]) if k > 1 else 0 for k in (*kernel, *kernel)]
    else:
        given["auto_pad"] = b.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        given["dilations"] = [1] * count
    return given


def conv(b: Builder) -> None:
    name = b.pick([3, 4])
    _, channels, *space = b.shape(name)
    groups = b.rng.choice([g for g, _ in factors_of(channels)])
    kernel = [b.rng.choice([1, 2, 2, 3]) for _ in space]
    if b.rng.random() < 0.25:
        kernel = [1 for _ in space]
    each = b.rng.choice([1, channels // groups, 2])
    weight = b.drawn([groups * each, channels // groups, *kernel])
    inputs = [name, weight, *([b.drawn([groups * each])] if b.rng.random() < 0.6 else [])]
    b.add("Conv", inputs, group=groups, **_window(b, len(space), kernel))


def head(b: Builder) -> None:
    """A product of channels, some of which were resized."""
    name = b.pick([3, 4])
    batch, channels, *space = b.shape(name)
    sizes = [b.rng.choice([2, 3, 4, n]) for n in space]
    told = b.constant(np.array([batch, channels, *sizes], np.int64))
    mode = b.rng.choice(["nearest", "linear"])
    alike = [n for n in b.values() if b.shape(n) == b.shape(name)]
    parts = [
        b.add("Resize", [b.rng.choice([name, *alike]), "", "", told], mode=mode)
        for _ in range(b.rng.choice([1, 1, 2]))
    ]
    fit = [n for n in b.values() if b.shape(n) == (batch, channels, *sizes)]
    parts += [b.rng.choice(fit) for _ in range(b.rng.randrange(3))]
    b.rng.shuffle(parts)
    whole = b.add("Concat", parts, axis=1) if len(parts) > 1 else parts[0]
    outputs = b.rng.choice([1, 2, 3])
    weight = b.drawn([outputs, channels * len(parts), *([1] * len(space))])
    b.add("Conv", [whole, weight, *([b.drawn([outputs])] if b.rng.random() < 0.6 else [])])


def conv_transpose(b: Builder) -> None:
    name = b.pick([3, 4])
    _, channels, *space = b.shape(name)
    groups = b.rng.choice([g for g, _ in factors_of(channels)])
    kernel = [b.rng.choice([1, 2, 3]) for _ in space]
    weight = b.drawn([channels, b.rng.choice([1, 2]), *kernel])
    pads = [b.rng.choice([0, 0, 1]) if k > 1 else 0 for k in (*kernel, *kernel)]
    strides = [b.rng.choice([1, 2]) for _ in space]
    extra = [b.rng.choice([0, 1]) if s > 1 else 0 for s in strides]
    given: dict[str, Any] = {
        "strides": strides,
        "pads": pads,
        "output_padding": extra,
        "kernel_shape": kernel,
    }
    b.add("ConvTranspose", [name, weight], group=groups, **given)


def pool(b: Builder) -> None:
    name = b.pick([3, 4])
    space = b.shape(name)[2:]
    kernel = [b.rng.choice([1, 2, 2, 3]) for _ in space]
    if b.rng.random() < 0.3:
        kernel = [2] * len(space)
    given = _window(b, len(space), kernel)
    op = b.rng.choice(["MaxPool", "AveragePool", "AveragePool", "LpPool"])
    if op == "AveragePool":
        given["count_include_pad"] = b.rng.randrange(2)
    if b.rng.random() < 0.2:
        op, given = b.rng.choice(["GlobalAveragePool", "GlobalMaxPool"]), {}
    elif "pads" in given:
        given["ceil_mode"] = b.rng.randrange(2)
    b.add(op, [name], **given)


def _some_axes(b: Builder, rank: int) -> str:
    axes = b.rng.sample(range(rank), b.rng.randrange(1, min(rank, 2) + 1))
    return b.constant(np.array([a - rank * b.rng.randrange(2) for a in axes]))


def reduced(b: Builder) -> None:
    name = b.pick(range(1, 5))
    axes = _some_axes(b, len(b.shape(name)))
    b.add(f"Reduce{b.rng.choice(REDUCTIONS)}", [name, axes], keepdims=b.rng.randrange(2))


def searched(b: Builder) -> None:
    name = b.pick(range(1, 5))
    rank = len(b.shape(name))
    axis = b.rng.randrange(-rank, rank)
    way = b.rng.randrange(4)
    if way == 0:
        keep = b.rng.randrange(2)
        found = b.add(b.rng.choice(["ArgMax", "ArgMin"]), [name], axis=axis, keepdims=keep)
        b.add("Cast", [found], to=DOUBLE)
    elif way == 1:
        count = b.constant(np.array([b.rng.randrange(1, b.shape(name)[axis] + 1)]))
        b.add("TopK", [name, count], 2, axis=axis, largest=b.rng.randrange(2))
        b.add("Cast", [b.nodes[-1].output[1]], to=DOUBLE)
    elif way == 2:
        given: dict[str, Any] = {"exclusive": b.rng.randrange(2), "reverse": b.rng.randrange(2)}
        b.add("CumSum", [name, b.constant(np.array(axis))], **given)
    else:
        b.add("Hardmax", [name], axis=axis)


def normalised(b: Builder) -> None:
    way = b.rng.randrange(8)
    if way < 2:
        name = b.pick(range(1, 5))
        rank = len(b.shape(name))
        op = b.rng.choice(["Softmax", "Softmax", "LogSoftmax", "LpNormalization"])
        b.add(op, [name], axis=b.rng.randrange(-rank, rank))
    elif way < 4:
        name = b.pick(range(1, 5))
        axis = b.rng.randrange(len(b.shape(name)))
        shape = b.shape(name)[axis:]
        inputs = [name, b.drawn(shape), *([b.drawn(shape)] if b.rng.random() < 0.6 else [])]
        b.add("LayerNormalization", inputs, axis=axis)
    elif way == 4:
        name = b.pick(range(2, 5))
        numbers = [b.drawn([b.shape(name)[1]]) for _ in range(3)]
        spread = b.constant(0.5 + np.arange(b.shape(name)[1]) * b.rng.choice([0.0, 0.3]))
        b.add("BatchNormalization", [name, *numbers, spread])
    elif way == 5:
        name = b.pick([3, 4])
        channels = b.shape(name)[1]
        b.add("InstanceNormalization", [name, b.drawn([channels]), b.drawn([channels])])
    elif way == 6:
        name = b.pick([3, 4])
        channels = b.shape(name)[1]
        groups = b.rng.choice([g for g, _ in factors_of(channels)])
        pair = [b.drawn([channels]), b.drawn([channels])]
        b.add("GroupNormalization", [name, *pair], num_groups=groups)
    else:
        b.add("LRN", [b.pick([4])], size=b.rng.choice([1, 3]), alpha=0.5)


def quantised(b: Builder) -> None:
    name = b.pick(range(2, 5))
    axis = b.rng.randrange(len(b.shape(name)))
    length = b.shape(name)[axis]
    per_axis = b.rng.random() < 0.7
    scale = 0.05 + 0.01 * np.arange(length) * b.rng.randrange(2) if per_axis else np.array(0.05)
    if b.rng.random() < 0.3 and per_axis:
        scale = scale[::-1].copy()
    steps = b.constant(scale.astype(np.float32))
    zero = b.constant(np.zeros(scale.shape, np.int8) + b.rng.choice([0, 3]))
    single = b.add("Cast", [name], to=FLOAT)
    whole = b.add("QuantizeLinear", [single, steps, zero], axis=axis)
    back = b.add("DequantizeLinear", [whole, steps, zero], axis=axis)
    b.add("Cast", [back], to=DOUBLE)


def cast(b: Builder) -> None:
    whole = b.add("Cast", [b.pick()], to=b.rng.choice([INT, FLOAT, BOOL]))
    b.add("Cast", [whole], to=DOUBLE)


WALKING: tuple[Step, ...] = (searched, padded, padded, pool, resized, normalised)
SEEING: tuple[Step, ...] = (parted, parted, normalised, transposed, reduced, searched)


def walked(b: Builder) -> None:
    """Axes along which nothing changes, an operator that changes that, and one that sees it."""
    name = b.pick(range(1, 5))
    rank = len(b.shape(name))
    axes = b.rng.sample(range(rank), b.rng.randrange(1, rank + 1))
    name = b.add("ReduceMean", [name, b.constant(np.array(axes))])
    if b.rng.random() < 0.6:
        shape = [3 if axis in axes else n for axis, n in enumerate(b.shape(name))]
        name = b.add("Expand", [name, b.constant(np.array(shape, np.int64))])
    try:
        b.focus = name
        b.rng.choice(WALKING)(b)
        b.focus = b.nodes[-1].output[0]
        b.rng.choice(SEEING)(b)
    finally:
        b.focus = None


STEPS: tuple[tuple[int, Step], ...] = (
    (4, unary), (7, binary), (2, quotient), (2, choice), (1, slope), (7, transposed),
    (5, reshaped), (4, view), (4, product), (2, gemm), (3, einsum), (3, conv),
    (2, conv_transpose), (3, pool), (4, reduced), (3, searched), (4, normalised), (3, placed),
    (4, parted), (1, found), (3, padded), (2, resized), (2, quantised), (1, cast), (1, expanded),
    (1, walked),
)  # fmt: skip
"""Each with how often it is drawn."""
