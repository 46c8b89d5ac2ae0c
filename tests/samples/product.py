"""Samples for `relayout.ops.product`."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.samples.sample import Array, Sample, small, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

_U8: dict[str, Any] = {"dtype": np.uint8, "low": 0, "high": 5}
_ONE = frozenset({1})

_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, int]] = {
    "batches": ((2, 3, 4, 5), (2, 3, 5, 6), 3, 1),
    "broadcast batch": ((2, 3, 4, 5), (1, 3, 5, 6), 3, 1),
    "square": ((2, 3, 4, 4), (2, 3, 4, 4), 3, 1),
    "weight": ((2, 3, 4, 5), (5, 6), 11, 5),
    "square weight": ((3, 4, 4), (4, 4), 3, 1),
    "unit batch weight": ((2, 3, 4, 5), (1, 5, 6), 11, 5),
    "vector": ((2, 3, 4, 5), (5,), 23, 23),
    "square and vector": ((4, 4), (4,), 1, 1),
    "right lacks a batch axis": ((2, 3, 4, 5), (3, 5, 6), 3, 1),
    "left lacks a batch axis": ((2, 3, 4, 5), (7, 2, 3, 5, 6), 3, 1),
    "left lacks all batch axes": ((4, 5), (3, 5, 6), 3, 0),
    "left is one matrix": ((1, 4, 5), (2, 3, 5, 6), 11, 0),
    "left is a vector": ((5,), (3, 5, 6), 5, 5),
    "vector and square": ((4,), (4, 4), 1, 1),
    "two vectors": ((4,), (4,), 0, 0),
    "right lacks one of three": ((2, 3, 7, 4, 5), (3, 7, 5, 6), 2, 1),
    "matrices": ((4, 5), (5, 6), 1, 0),
    "square matrices": ((4, 4), (4, 4), 1, 0),
}
"""Left, right, and how many other orders of the lead there are for numbers and for quantised."""


def _matmul() -> Iterator[Sample]:
    for version in versions("MatMul"):
        for note, (left, right, admits, _) in _SHAPES.items():
            operands = [small(*left), small(*right)]
            yield Sample("MatMul", version, operands, admits=admits, note=note)
            if min(len(left), len(right)) > 1:
                yield Sample("MatMul", version, operands, constants=_ONE, admits=admits, note=note)
    for left, admits in (((2, 3, 4), 3), ((2, 3, 4, 5), 17), ((2, 3, 4, 5, 6), 3)):
        weight = [small(*left), small(left[-1], 7)]
        yield Sample("MatMul", 13, weight, constants=_ONE, admits=admits, note="as a Conv")
    double = [small(2, 3, 4, 5, dtype=np.float64), small(5, 6, dtype=np.float64)]
    yield Sample("MatMul", 13, double, constants=_ONE, admits=11, note="no Conv of this type")


def _integer() -> Iterator[Sample]:
    for note, (left, right, _, admits) in _SHAPES.items():
        zeros_given: list[list[Any]] = [[], [np.uint8(3)], [np.uint8(3), np.uint8(2)]]
        if not _is_vector(left, right):
            zeros_given.append([None, small(right[-1], **_U8)])
        for zeros in zeros_given:
            operands = [small(*left, **_U8), small(*right, **_U8), *map(_scalar, zeros)]
            yield Sample("MatMulInteger", 10, operands, admits=admits, note=note)
    rows = [small(3, 4, 5, **_U8), small(5, 6, **_U8), small(4, 1, **_U8)]
    yield Sample("MatMulInteger", 10, rows, admits=0, note="zero point per row", runtime="ort")


def _quantized() -> Iterator[Sample]:
    for version in versions("QLinearMatMul"):
        for note, (left, right, _, admits) in _SHAPES.items():
            columns = np.arange(1, right[-1] + 1, dtype=np.float32) / 4
            per_column = [] if _is_vector(left, right) else [(columns, small(right[-1], **_U8))]
            for scale, zero in ((np.float32(0.25), np.uint8(2)), *per_column):
                operands = [
                    *(small(*left, **_U8), np.float32(0.5), np.uint8(1)),
                    *(small(*right, **_U8), scale, zero),
                    *(np.float32(0.5), np.uint8(100)),
                ]
                given = [_scalar(operand) for operand in operands]
                yield Sample("QLinearMatMul", version, given, admits=admits, note=note)


def _gemm() -> Iterator[Sample]:
    for version in versions("Gemm"):
        for trans_a in (0, 1):
            left = small(5, 4) if trans_a else small(4, 5)
            attributes = {"transA": trans_a, "alpha": 2.0, "beta": 0.5}
            operands: list[Array | None] = [left, small(5, 6), small(6)]
            yield Sample("Gemm", version, operands, attributes, note=f"transA={trans_a}")
        operands = [small(4, 4), small(6, 4), small(4, 1)]
        yield Sample("Gemm", version, operands, {"transB": 1}, note="square, transB")
        for addend in ((), (1,), (1, 6), (4, 1), (4, 6)):
            operands = [small(4, 5), small(5, 6), small(*addend)]
            yield Sample("Gemm", version, operands, {"alpha": 2.0}, note="addend")
            constant = frozenset({1, 2})
            yield Sample("Gemm", version, operands, constants=constant, note="constant addend")
        if version >= 11:
            yield Sample("Gemm", version, [small(4, 5), small(5, 6)], note="no C")


_EQUATIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None, int]] = {
    "abij,abjk->abik": ((2, 3, 4, 5), (2, 3, 5, 6), 23),
    "bij , bjk": ((2, 3, 4), (2, 4, 5), 5),
    "zAi->iz": ((2, 3, 4), None, 5),
    "iij->ij": ((3, 3, 4), None, 5),
    "ij->": ((3, 4), None, 1),
    "...ij,...jk->...ik": ((2, 3, 4, 5), (2, 3, 5, 6), 1),
    "i...j,jk": ((2, 3, 4, 5), (5, 6), 1),
    "ij ..., jk": ((2, 3, 4), (3, 5), 1),
    "i...j->...ji": ((3, 4), None, 1),
    "...": ((3, 4), None, 0),
}


def _einsum() -> Iterator[Sample]:
    for version in versions("Einsum"):
        for equation, (left, right, admits) in _EQUATIONS.items():
            operands: list[Array | None] = [
                small(*left),
                *([] if right is None else [small(*right)]),
            ]
            attributes = {"equation": equation}
            yield Sample("Einsum", version, operands, attributes, admits=admits, note=equation)


def _det() -> Iterator[Sample]:
    for version in versions("Det"):
        yield Sample("Det", version, [small(2, 5, 3, 3)], admits=3, tolerance=1e-5)
        yield Sample("Det", version, [small(4, 3, 3)], admits=1, tolerance=1e-5)
        yield Sample("Det", version, [small(3, 3)], tolerance=1e-5)


def _is_vector(*shapes: tuple[int, ...]) -> bool:
    """Whether one of two factors is a vector, which has no columns."""
    return min(map(len, shapes)) < 2


def _scalar(value: Any) -> Array | None:
    return None if value is None else np.asarray(value)


def _with_flags() -> Iterator[Sample]:
    """A product that one runtime only knows."""
    for left, right in (((2, 4, 5), (2, 5, 6)), ((2, 3, 4, 5), (1, 3, 5, 6)), ((3, 4, 5), (5, 6))):
        for trans_a, trans_b in product((0, 1), repeat=2):
            factors: list[Array | None] = [
                small(*_swapped(left) if trans_a else left),
                small(*_swapped(right) if trans_b else right),
            ]
            attributes = {"transA": trans_a, "transB": trans_b, "alpha": 2.0}
            yield _fused(factors, attributes)
    rows_first: list[Array | None] = [small(4, 2, 3, 5), small(6, 2, 3, 5)]
    yield _fused(rows_first, {"transBatchA": 1, "transB": 1, "transBatchB": 1})


def _fused(factors: list[Array | None], attributes: dict[str, Any]) -> Sample:
    note = f"{attributes}".replace(" ", "")
    return Sample(
        *("FusedMatMul", 1, factors, attributes),
        domain="com.microsoft",
        admits=1,
        note=note,
        runtime="ort",
    )


def _swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


FUSED: list[Sample] = list(_with_flags())
SAMPLES: list[Sample] = [*_matmul(), *_integer(), *_quantized(), *_gemm(), *_einsum(), *_det()]
