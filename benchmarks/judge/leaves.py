"""Nodes that compute: elementwise, reductions, indices, products, windows, quantisers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.judge.scope import InvalidError, Scope, Value

EXACT_UNARY = ("Neg", "Abs", "Relu", "Identity", "Floor", "Ceil", "Sign", "LeakyRelu")
ROUGH_UNARY = ("Sigmoid", "Tanh", "Softplus", "Erf", "HardSigmoid", "Elu", "Softsign", "Sin")
REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceSumSquare")


def unary(scope: Scope) -> None:
    if scope.chance.random() < 0.7:
        value = scope.floats(exact=True)
        op_type = scope.chance.choice(EXACT_UNARY)
        scope.add(op_type, [value], {"alpha": 2.0} if op_type == "LeakyRelu" else None)
    else:
        scope.add(scope.chance.choice(ROUGH_UNARY), [scope.floats()], rounds=True)


def clip(scope: Scope) -> None:
    value = scope.floats()
    if scope.opset < 11:
        scope.add("Clip", [value], {"min": -3.0, "max": 9.0})
        return
    bounds = [scope.constant(np.asarray(b, np.float32)) for b in (-3, 9)]
    scope.add("Clip", [value, *bounds])


def cast(scope: Scope) -> None:
    value = scope.pick(lambda v: v.exact)
    scope.add("Cast", [value], {"to": scope.chance.choice((1, 6, 7, 11))})


def binary(scope: Scope) -> None:
    """Two values with the same lengths, perhaps in other orders, or one with a smaller constant."""
    first = scope.pick(lambda v: v.data.dtype.kind in "fi" and v.data.dtype != np.float16)
    op_type = scope.chance.choice(("Add", "Sub", "Max", "Min", "Mul", "Add"))
    if op_type in {"Max", "Min"} and (scope.opset < 8 or first.data.dtype.kind == "i"):
        raise InvalidError
    second = None
    if scope.chance.random() < 0.6:
        second = scope.alike(first, besides=frozenset({first.name}))
    if second is None:
        second = scope.fresh(_small(scope, _partner(scope, first.data.shape), first.data.dtype))
    operands = [first, second]
    if scope.chance.random() < 0.4:
        operands.reverse()
    scope.add(op_type, operands)


def _partner(scope: Scope, shape: tuple[int, ...]) -> list[int]:
    """A shape that is broadcast against another one."""
    kept = shape[scope.chance.randint(0, len(shape)) :]
    return [1 if scope.chance.random() < 0.4 else length for length in kept]


def _small(scope: Scope, shape: Any, dtype: Any = np.float32, low: int = -2, high: int = 2) -> Any:
    size = int(np.prod(shape))
    numbers = [scope.chance.randint(low, high) for _ in range(size)]
    return np.asarray(numbers, np.float64).reshape(tuple(shape)).astype(dtype)


def where(scope: Scope) -> None:
    if scope.opset < 9:
        raise InvalidError
    first = scope.floats(1)
    second = scope.alike(first) or first
    limit = scope.constant(np.asarray(1, np.float32))
    source = first if first.exact else second
    if not source.exact:
        raise InvalidError
    scope.add("Where", [scope.one("Greater", [source, limit]), first, second])


def reduce(scope: Scope) -> None:
    value = scope.floats(1)
    if not value.data.size:
        raise InvalidError
    op_type = scope.chance.choice(REDUCTIONS)
    axes = scope.chance.sample(range(value.rank), scope.chance.randint(1, value.rank))
    if scope.opset >= 11 and scope.chance.random() < 0.3:
        axes[0] -= value.rank
    attributes: dict[str, Any] = {"keepdims": scope.chance.randint(0, 1)}
    is_operand = scope.opset >= (13 if op_type == "ReduceSum" else 18)
    operands: list[Value | None] = [value]
    if is_operand and scope.chance.random() < 0.9:
        operands.append(scope.ints(*axes))
    elif not is_operand:
        attributes["axes"] = axes
    scope.add(op_type, operands, attributes, rounds=op_type == "ReduceMean")


def arg(scope: Scope) -> None:
    value = scope.floats(1, exact=True)
    axis, keepdims = scope.chance.randrange(value.rank), scope.chance.randint(0, 1)
    op_type = scope.chance.choice(("ArgMax", "ArgMin"))
    scope.add(op_type, [value], {"axis": axis, "keepdims": keepdims})


def softmax(scope: Scope) -> None:
    value = scope.floats(1)
    op_type = scope.chance.choice(("Softmax", "LogSoftmax"))
    scope.add(op_type, [value], {"axis": scope.chance.randrange(value.rank)}, rounds=True)


def concat(scope: Scope) -> None:
    first = scope.pick(lambda v: v.rank >= 1)
    others = [scope.alike(first) or first for _ in range(scope.chance.randint(1, 2))]
    scope.add("Concat", [first, *others], {"axis": _axis(scope, first)})


def _axis(scope: Scope, value: Value) -> int:
    axis = scope.chance.randrange(value.rank)
    is_negative = scope.opset >= 11 and scope.chance.random() < 0.3
    return axis - value.rank if is_negative else axis


def split(scope: Scope) -> None:
    value = scope.pick(lambda v: v.rank >= 1)
    axis = scope.chance.randrange(value.rank)
    length = value.data.shape[axis]
    if length < 2:
        raise InvalidError
    first = scope.chance.randint(1, length - 1)
    parts = [first, length - first]
    if scope.opset < 13:
        scope.add("Split", [value], {"axis": axis, "split": parts}, outputs=2)
    elif scope.opset >= 18 and length % 2 == 0 and scope.chance.random() < 0.4:
        scope.add("Split", [value], {"axis": axis, "num_outputs": 2}, outputs=2)
    else:
        scope.add("Split", [value, scope.ints(*parts)], {"axis": axis}, outputs=2)


def slice_(scope: Scope) -> None:
    value = scope.pick(lambda v: v.rank >= 1)
    axes = scope.chance.sample(range(value.rank), scope.chance.randint(1, min(2, value.rank)))
    steps = [scope.chance.choice((1, 1, 2, -1)) for _ in axes]
    starts = [scope.chance.choice((0, 0, 1, -2)) if s > 0 else -1 for s in steps]
    ends = [scope.chance.choice((-1, 3, 2**31)) if s > 0 else -(2**31) for s in steps]
    if scope.opset < 10:
        pairs = {"starts": [max(s, -9) for s in starts], "ends": ends, "axes": axes}
        scope.add("Slice", [value], pairs)
        return
    if scope.chance.random() < 0.3:
        axes = [axis - value.rank for axis in axes]
    scope.add("Slice", [value, *(scope.ints(*n) for n in (starts, ends, axes, steps))])


def pad(scope: Scope) -> None:
    value = scope.floats(1)
    pads = [scope.chance.choice((0, 0, 1)) for _ in range(2 * value.rank)]
    mode = scope.chance.choice(("constant", "constant", "reflect", "edge"))
    if scope.opset < 11:
        scope.add("Pad", [value], {"pads": pads, "mode": mode})
        return
    operands: list[Value | None] = [value, scope.ints(*pads)]
    if mode == "constant" and scope.chance.random() < 0.5:
        operands.append(scope.constant(np.asarray(7, np.float32)))
    scope.add("Pad", operands, {"mode": mode})


def gather(scope: Scope) -> None:
    value = scope.pick(lambda v: v.rank >= 1)
    axis = scope.chance.randrange(value.rank)
    length = value.data.shape[axis]
    if not length:
        raise InvalidError
    shape = scope.chance.choice(((), (1,), (3,), (2, 2), (0,)))
    low = -length if scope.opset >= 11 else 0
    picked = _small(scope, shape, np.int64, low, length - 1)
    scope.add("Gather", [value, scope.fresh(picked)], {"axis": axis})


def tile(scope: Scope) -> None:
    value = scope.pick(lambda v: v.rank >= 1)
    repeats = [scope.chance.choice((1, 1, 2)) for _ in range(value.rank)]
    scope.add("Tile", [value, scope.ints(*repeats)])


def topk(scope: Scope) -> None:
    value = scope.floats(1, exact=True)
    axis = scope.chance.randrange(value.rank)
    if scope.opset < 10 or not value.data.shape[axis]:
        raise InvalidError
    scope.add("TopK", [value, scope.ints(1)], {"axis": axis}, outputs=2)


def matmul(scope: Scope) -> None:
    value = scope.floats(1, 5)
    inner = value.data.shape[-1]
    lead = list(value.data.shape[:-2]) if scope.chance.random() < 0.3 else []
    weight = scope.fresh(_small(scope, [*lead, inner, scope.chance.choice((1, 2, 3))], high=1))
    if scope.chance.random() < 0.5 and weight.rank >= 2:
        order = scope.order(weight.rank)
        data = np.ascontiguousarray(weight.data.transpose(np.argsort(order)))
        weight = scope.transposed(scope.fresh(data), order)
    product = scope.one("MatMul", [value, weight])
    if scope.chance.random() < 0.4 and product.rank:
        scope.add("Add", [product, scope.constant(_small(scope, [product.data.shape[-1]]))])


def attention_like(scope: Scope) -> None:
    """A value times itself transposed: both factors are computed."""
    value = scope.floats(2, 4)
    order = list(range(value.rank))
    order[-1], order[-2] = order[-2], order[-1]
    other = scope.transposed(value, order)
    scores = scope.one("MatMul", [value, other])
    last = scope.add("Softmax", [scores], {"axis": value.rank - 1}, rounds=True)[0]
    scope.add("MatMul", [last, value], rounds=True)


def gemm(scope: Scope) -> None:
    value = scope.floats(2, 2)
    flags = {"transA": scope.chance.randint(0, 1), "transB": scope.chance.randint(0, 1)}
    inner = value.data.shape[0 if flags["transA"] else 1]
    shape = (3, inner) if flags["transB"] else (inner, 3)
    operands = [value, scope.fresh(_small(scope, shape, high=1))]
    if scope.chance.random() < 0.6:
        operands.append(scope.constant(_small(scope, scope.chance.choice(((3,), (1, 3), (1,))))))
    elif scope.opset < 11:
        raise InvalidError
    scope.add("Gemm", operands, flags)


def convolution(scope: Scope) -> None:
    """A convolution of an image, whose channels are last every other time."""
    value = scope.floats(3, 5)
    if scope.chance.random() < 0.5:
        value = scope.transposed(value, (0, value.rank - 1, *range(1, value.rank - 1)))
    channels, spatial = value.data.shape[1], value.rank - 2
    group = channels if scope.chance.random() < 0.2 else 1
    kernel = [scope.chance.choice((1, 2, 3)) for _ in range(spatial)]
    if not channels:
        raise InvalidError
    is_back = scope.chance.random() < 0.2
    outputs = scope.chance.choice((1, 2)) if group > 1 else scope.chance.choice((2, 3, 4))
    shape = (channels, outputs) if is_back else (outputs * group, channels // group)
    weight = scope.fresh(_small(scope, (*shape, *kernel), high=1))
    operands = [value, weight]
    if scope.chance.random() < 0.5:
        operands.append(scope.constant(_small(scope, [outputs * group])))
    attributes: dict[str, Any] = {"group": group, "kernel_shape": kernel}
    attributes |= {"pads": [1] * (2 * spatial), "strides": [scope.chance.choice((1, 2))] * spatial}
    result = scope.add("ConvTranspose" if is_back else "Conv", operands, attributes)[0]
    if scope.chance.random() < 0.5:
        scope.transposed(result, (0, *range(2, result.rank), 1))


def pool(scope: Scope) -> None:
    value = scope.floats(3, 5)
    op_type = scope.chance.choice(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    if op_type.startswith("Global"):
        scope.add(op_type, [value], rounds="Average" in op_type)
        return
    spatial = value.rank - 2
    attributes: dict[str, Any] = {"kernel_shape": [2] * spatial}
    if scope.chance.random() < 0.5:
        attributes |= {"pads": [1] * (2 * spatial), "strides": [2] * spatial}
    scope.add(op_type, [value], attributes, rounds=op_type == "AveragePool")


def region_pool(scope: Scope) -> None:
    """The corners of a region, after the number of its image."""
    regions = scope.fresh(np.asarray([[0, 0, 0, 1, 1]], np.float32))
    scope.add("MaxRoiPool", [scope.floats(4, 4), regions], {"pooled_shape": [1, 2]})


def normalization(scope: Scope) -> None:
    value = scope.floats(3, 5)
    channels = value.data.shape[1]
    weights = [scope.constant(_small(scope, [channels], low=1)) for _ in range(2)]
    op_type = scope.chance.choice(("BatchNormalization", "InstanceNormalization"))
    if op_type == "BatchNormalization":
        weights += [scope.constant(_small(scope, [channels], low=1)) for _ in range(2)]
    scope.add(op_type, [value, *weights], rounds=True)


def layer_normalization(scope: Scope) -> None:
    value = scope.floats(2, 4)
    if scope.opset < 17 or not value.data.size:
        raise InvalidError
    axis = scope.chance.randrange(1, value.rank)
    scale = scope.constant(_small(scope, value.data.shape[axis:], low=1))
    scope.add("LayerNormalization", [value, scale], {"axis": axis}, rounds=True)


def quantised(scope: Scope) -> None:
    """A pair of quantisers, perhaps with something that moves between them."""
    value = scope.floats(1, 5, exact=True)
    if scope.opset < 10:
        raise InvalidError
    parameters, attributes = _quantiser(scope, value)
    small = scope.add("QuantizeLinear", [value, *parameters], attributes)[0]
    if small.rank >= 2 and scope.chance.random() < 0.4:
        order = scope.order(small.rank)
        small = scope.transposed(small, order)
        if "axis" in attributes:
            attributes = {**attributes, "axis": order.index(attributes["axis"])}
    scope.add("DequantizeLinear", [small, *parameters], attributes)


def _quantiser(scope: Scope, value: Value) -> tuple[list[Value], dict[str, Any]]:
    dtype = scope.chance.choice((np.int8, np.uint8))
    zero = 0 if dtype == np.int8 else 128
    if scope.opset < 13 or scope.chance.random() < 0.5:
        scale = scope.constant(np.asarray(scope.chance.choice((1, 2)), np.float32))
        return [scale, scope.constant(np.asarray(zero, dtype))], {}
    axis = scope.chance.randrange(value.rank)
    length = value.data.shape[axis]
    scale = scope.constant(2.0 ** _small(scope, [length], low=0, high=1))
    return [scale, scope.constant(np.full([length], zero, dtype))], {"axis": axis}


def quantised_weight(scope: Scope) -> None:
    """A product with weights that are stored as bytes."""
    value = scope.floats(2, 4, exact=True)
    if scope.opset < 13:
        raise InvalidError
    inner = value.data.shape[-1]
    weight = scope.constant(_small(scope, (inner, 3), np.int8))
    scale = scope.constant(np.asarray((1, 2, 1), np.float32))
    weight = scope.one("DequantizeLinear", [weight, scale], axis=1)
    scope.add("MatMul", [value, weight])


def sequence(scope: Scope) -> None:
    """Tensors that go into a sequence and come out of it."""
    if scope.opset < 11:
        raise InvalidError
    value = scope.floats(1)
    if scope.chance.random() < 0.5:
        items = scope.one("SplitToSequence", [value], axis=0)
        scope.add("ConcatFromSequence", [items], {"axis": scope.chance.randrange(value.rank)})
        scope.add("SequenceLength", [items])
        return
    other = scope.alike(value) or value
    items = scope.one("SequenceConstruct", [value, other])
    items = scope.one("SequenceInsert", [items, value])
    items = scope.one("SequenceErase", [items, scope.constant(np.asarray(0, np.int64))])
    scope.add("SequenceAt", [items, scope.constant(np.asarray(-1, np.int64))])


LEAVES = (
    *(unary, clip, cast, binary, where, reduce, arg, softmax, concat, split, slice_, pad, gather),
    *(tile, topk, matmul, attention_like, gemm, convolution, pool, normalization, binary),
    *(
        region_pool,
        layer_normalization,
        quantised,
        quantised_weight,
        sequence,
        unary,
        binary,
        convolution,
    ),
)
