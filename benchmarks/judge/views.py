"""Nodes that move or view: Transposes, and chains of Reshape, Squeeze, Expand and their like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.judge.scope import InvalidError, Scope, Value


def transpose(scope: Scope) -> None:
    """One or two Transposes of a value."""
    value = scope.pick(lambda v: v.rank >= 2)
    for _ in range(scope.chance.randint(1, 2)):
        has_perm = scope.chance.random() < 0.9
        value = scope.transposed(value, scope.order(value.rank)) if has_perm else _reversed(scope)


def _reversed(scope: Scope) -> Value:
    return scope.one("Transpose", [scope.pick(lambda v: v.rank >= 2)])


def sandwich(scope: Scope) -> None:
    """A view between two Transposes, as exporters write them."""
    value = scope.pick(lambda v: 2 <= v.rank <= 5)
    value = scope.transposed(value, scope.order(value.rank))
    value = view_of(scope, value)
    if value.rank >= 2:
        scope.transposed(value, scope.order(value.rank))


def view(scope: Scope) -> None:
    """A chain of one to three views."""
    value = scope.pick()
    for _ in range(scope.chance.randint(1, 3)):
        value = view_of(scope, value)


def view_of(scope: Scope, value: Value) -> Value:
    return scope.chance.choice(_VIEWS)(scope, value)


def reshape(scope: Scope, value: Value) -> Value:
    """Axes merged or split, with 0 and -1 among the lengths now and then."""
    shape = _regrouped(scope, value.data.shape)
    for axis, length in enumerate(shape):
        if axis < value.rank and length == value.data.shape[axis] and scope.chance.random() < 0.2:
            shape[axis] = 0
    if shape and value.data.size and scope.chance.random() < 0.4:
        shape[scope.chance.randrange(len(shape))] = -1
    return scope.one("Reshape", [value, scope.ints(*shape)])


def _regrouped(scope: Scope, shape: Sequence[int]) -> list[int]:
    """Lengths with the same product: neighbours merged, others split."""
    found = list(shape)
    for _ in range(scope.chance.randint(1, 2)):
        axis = scope.chance.randrange(len(found)) if found else 0
        if len(found) >= 2 and scope.chance.random() < 0.5:
            axis = min(axis, len(found) - 2)
            found[axis : axis + 2] = [found[axis] * found[axis + 1]]
        elif len(found) < 6:
            length = found[axis] if found else 1
            divisors = [n for n in range(1, length + 1) if length % n == 0] or [1]
            part = scope.chance.choice(divisors)
            found[axis : axis + 1] = [part, length // part]
    return found


def computed_reshape(scope: Scope, value: Value) -> Value:
    """The target is computed from the lengths, as exporters of dynamic models write it."""
    if value.rank < 2 or not value.data.size:
        raise InvalidError
    kept = scope.chance.randrange(value.rank)
    lengths = scope.one("Shape", [value])
    length = scope.one("Gather", [lengths, scope.ints(kept)], axis=0)
    parts = [length, scope.ints(-1)]
    if scope.chance.random() < 0.5:
        parts.reverse()
    return scope.one("Reshape", [value, scope.one("Concat", parts, axis=0)])


def flatten(scope: Scope, value: Value) -> Value:
    if value.rank == 0:
        raise InvalidError
    return scope.one("Flatten", [value], axis=scope.chance.randint(0, value.rank))


def unsqueeze(scope: Scope, value: Value) -> Value:
    count = scope.chance.randint(1, 2)
    if value.rank + count > 6:
        raise InvalidError
    axes = scope.chance.sample(range(value.rank + count), count)
    if scope.opset >= 11 and scope.chance.random() < 0.4:
        axes[0] -= value.rank + count
    if scope.opset >= 13:
        return scope.one("Unsqueeze", [value, scope.ints(*axes)])
    return scope.one("Unsqueeze", [value], axes=axes)


def squeeze(scope: Scope, value: Value) -> Value:
    units = [axis for axis, length in enumerate(value.data.shape) if length == 1]
    if not units:
        return squeeze(scope, unsqueeze(scope, value))
    axes = scope.chance.sample(units, scope.chance.randint(1, len(units)))
    if scope.chance.random() < 0.15:
        return scope.one("Squeeze", [value])
    if scope.opset >= 11 and scope.chance.random() < 0.4:
        axes[0] -= value.rank
    if scope.opset >= 13:
        return scope.one("Squeeze", [value, scope.ints(*axes)])
    return scope.one("Squeeze", [value], axes=axes)


def expand(scope: Scope, value: Value) -> Value:
    if scope.opset < 8:
        raise InvalidError
    shape = [scope.chance.choice((1, 2, 3)) if n == 1 else n for n in value.data.shape]
    shape = [1 if scope.chance.random() < 0.2 else n for n in shape]
    if scope.chance.random() < 0.3 and len(shape) < 5:
        shape.insert(0, 2)
    if scope.chance.random() < 0.1:
        shape = shape[1:]
    return scope.one("Expand", [value, scope.ints(*shape)])


def identity(scope: Scope, value: Value) -> Value:
    return scope.one("Identity", [value])


def space(scope: Scope, value: Value) -> Value:
    """Blocks of an image become channels, or the reverse."""
    if value.rank != 4:
        raise InvalidError
    if value.data.shape[1] % 4 == 0:
        mode = {"mode": scope.chance.choice(("DCR", "CRD"))} if scope.opset >= 11 else {}
        return scope.one("DepthToSpace", [value], blocksize=2, **mode)
    return scope.one("SpaceToDepth", [value], blocksize=2)


def fresh(scope: Scope) -> None:
    """New data, with lengths of one of the regimes."""
    rank = scope.chance.choice((0, 1, 2, 3, 3, 4, 4, 4, 5))
    regime = scope.chance.choice(
        ((2, 3, 4, 5, 2), (3, 3, 3, 3, 3), (1, 4, 1, 3, 2), (4, 8, 2, 2, 6))
    )
    shape = scope.chance.sample(regime, rank)
    if scope.chance.random() < 0.03 and shape:
        shape[0] = 0
    dtype = scope.chance.choices(
        (np.float32, np.float64, np.int64, np.int32, np.float16, np.bool_), (14, 1, 2, 1, 1, 1)
    )[0]
    numbers = np.arange(math.prod(shape))
    scope.chance.shuffle(listed := numbers.tolist())
    data = np.asarray(listed, np.int64).reshape(shape) - numbers.size // 4
    scope.values.append(scope.fresh((data % 2 if dtype == np.bool_ else data).astype(dtype)))


_VIEWS: Sequence[Callable[[Scope, Value], Value]] = (
    *(reshape, reshape, computed_reshape, flatten, unsqueeze, squeeze, expand, identity, space),
)
