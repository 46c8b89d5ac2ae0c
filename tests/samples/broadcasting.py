"""Samples of operators that broadcast their operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.samples.elementwise import signed, texts, truths
from tests.samples.sample import Array, Sample, counting, ints, small, versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (2, 1, 4, 1)),
    ((2, 3, 4, 5), (5,)),
    ((4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), ()),
    ((2, 1, 5), (3, 1, 4, 1)),
)
_ARITHMETIC = ("Add", "Div", "Max", "Mean", "Min", "Mul", "Sub", "Sum")
_COMPARISON = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
_VARIADIC = ("Max", "Mean", "Min", "Sum")


def _numbers(*shape: int) -> Array:
    return counting(*shape)


def _few_numbers(*shape: int) -> Array:
    return small(*shape)


def _integers(*shape: int) -> Array:
    return counting(*shape, dtype=np.int32)


def _shifts(*shape: int) -> Array:
    return small(*shape, dtype=np.uint32, low=0, high=5)


def _shapes(op_type: str, version: int) -> Sequence[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Max, Mean, Min and Sum broadcast only since opset 8."""
    return PAIRS[:1] if op_type in _VARIADIC and version < 8 else PAIRS


def _runtime(op_type: str) -> str:
    """The reference evaluator adds up a Mean in its first operand, whatever its shape."""
    return "ort" if op_type == "Mean" else "reference"


def _pairs() -> Iterator[Sample]:
    for op_types, data in (
        (_ARITHMETIC, _numbers),
        (_COMPARISON, _few_numbers),
        (("And", "Or", "Xor"), truths),
        (("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mod"), _integers),
        (("StringConcat",), texts),
    ):
        for op_type in op_types:
            for version in versions(op_type):
                for first, second in _shapes(op_type, version):
                    operands = [data(*first), data(*second)]
                    yield Sample(op_type, version, operands, runtime=_runtime(op_type))


def _with_attributes() -> Iterator[Sample]:
    for version in versions("BitShift"):
        for first, second in PAIRS:
            operands = [_shifts(*first) + 9, _shifts(*second)]
            yield Sample("BitShift", version, operands, {"direction": "LEFT"})
    for version in versions("Mod"):
        operands = [signed(2, 3, 4, 5), signed(3, 1, 5)]
        yield Sample("Mod", version, operands, {"fmod": 1}, note="fmod")
    for version in versions("SwiGLU"):
        for alpha in (1.0, 2.0):
            operands = [signed(2, 3, 4, 5), counting(2, 3, 4, 5)]
            yield Sample("SwiGLU", version, operands, {"alpha": alpha}, note=str(alpha))


def _powers() -> Iterator[Sample]:
    for version in versions("Pow"):
        for first, second in PAIRS:
            yield Sample("Pow", version, [_numbers(*first), _few_numbers(*second)])
        if version >= 12:
            exponent = small(4, 1, dtype=np.int64, low=0)
            yield Sample("Pow", version, [_numbers(2, 3, 4, 5), exponent], note="mixed-types")


def _variadic() -> Iterator[Sample]:
    for op_type in _VARIADIC:
        for version in versions(op_type):
            same, other = counting(2, 3, 4, 5), small(2, 3, 4, 5)
            mixed = [counting(4, 1), counting(5), counting(2, 3, 1, 5), small(3, 1, 1)]
            for operands in ([same], [same, other, other], mixed)[: 2 if version < 8 else 3]:
                yield Sample(op_type, version, operands, runtime=_runtime(op_type))


def _choices() -> Iterator[Sample]:
    shapes: list[tuple[tuple[int, ...], ...]] = [
        ((2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4, 5)),
        ((3, 1, 5), (2, 3, 4, 5), ()),
        ((5,), (4, 1), (2, 3, 4, 5)),
        ((4, 5), (3, 4, 1), (3, 1, 5)),
    ]
    for version in versions("Where"):
        for first, second, third in shapes:
            yield Sample("Where", version, [truths(*first), counting(*second), -counting(*third)])


def _slopes() -> Iterator[Sample]:
    for version in versions("PRelu"):
        for slope in ((2, 3, 4, 5), (5,), (3, 1, 1), (1, 3, 1, 5), ()):
            operands = [signed(2, 3, 4, 5), counting(*slope)]
            yield Sample("PRelu", version, operands)
            yield Sample("PRelu", version, operands, constants=frozenset({1}), note="const")


def _others() -> Iterator[Sample]:
    bias = frozenset({1})
    yield Sample("Add", 14, [counting(2, 3, 4, 5), counting(5)], constants=bias, note="const")
    yield Sample("Add", 7, [counting(2, 3, 4, 5), counting(4, 1)], constants=bias, note="const")
    yield Sample("Mul", 14, [counting(3, 1, 1), counting(2, 3, 4, 5)], constants=frozenset({0}))
    yield Sample("Add", 14, [counting(2, 3, 4, 5, 6), counting(4, 1, 6)])
    yield Sample("Add", 14, [counting(3, 3, 3, 3), counting(3)], note="alike")
    yield Sample("Sub", 14, [counting(3, 3, 3), counting(3, 3)], note="alike")
    yield Sample("Sub", 13, [counting(3, 4), counting(4)])
    yield Sample("Sub", 14, [counting(2, 3, 4, 5), counting(1, 1)], note="units")


def _expansions() -> Iterator[Sample]:
    """The operand, its target, and how many orders a target known only at run time admits."""
    cases: list[tuple[tuple[int, ...], tuple[int, ...], int | None]] = [
        ((2, 1, 4, 1), (2, 3, 4, 5), None),
        ((2, 3, 1, 5), (1, 3, 4, 1), None),
        ((3, 1, 5), (2, 3, 4, 5), None),
        ((4, 1), (2, 3, 4, 5), None),
        ((2, 3, 1, 5), (4, 5), 3),
        ((2, 3, 4, 1), (5,), 5),
        ((2, 3, 4, 5), (), None),
        ((1, 3, 1, 3, 1), (3, 3, 3, 3, 3), None),
    ]
    for version in versions("Expand"):
        for shape, target, admits in cases:
            operands = [counting(*shape), ints(*target)]
            note = f"to{len(target)}"
            yield Sample(
                "Expand", version, operands, constants=frozenset({1}), note=note + "-const"
            )
            yield Sample("Expand", version, operands, admits=admits, note=note)


SAMPLES = [
    *_pairs(),
    *_with_attributes(),
    *_powers(),
    *_variadic(),
    *_choices(),
    *_slopes(),
    *_others(),
    *_expansions(),
]
