"""Samples for `relayout.ops.product`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.samples.sample import Array, Sample, small, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

_U8: dict[str, Any] = {"dtype": np.uint8, "low": 0, "high": 5}
_ONE = frozenset({1})

_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "batches": ((2, 3, 4, 5), (2, 3, 5, 6), 1),
    "broadcast batch": ((2, 3, 4, 5), (1, 3, 5, 6), 1),
    "square": ((2, 3, 4, 4), (2, 3, 4, 4), 1),
    "weight": ((2, 3, 4, 5), (5, 6), 5),
    "square weight": ((3, 4, 4), (4, 4), 1),
    "unit batch weight": ((2, 3, 4, 5), (1, 5, 6), 5),
    "vector": ((2, 3, 4, 5), (5,), 5),
    "right lacks a batch axis": ((2, 3, 4, 5), (3, 5, 6), 1),
    "left lacks a batch axis": ((2, 3, 4, 5), (7, 2, 3, 5, 6), 1),
    "left lacks all batch axes": ((4, 5), (3, 5, 6), 0),
    "left is a vector": ((5,), (3, 5, 6), 0),
    "right lacks one of three": ((2, 3, 7, 4, 5), (3, 7, 5, 6), 1),
}
"""Left, right, and how many other orders of the left one there are."""


def _matmul() -> Iterator[Sample]:
    for version in versions("MatMul"):
        for note, (left, right, admits) in _SHAPES.items():
            operands = [small(*left), small(*right)]
            yield Sample("MatMul", version, operands, admits=admits, note=note)
    weight = [small(2, 3, 4, 5), small(5, 6)]
    yield Sample("MatMul", 13, weight, constants=_ONE, admits=5, note="constant weight")
    aligned = [small(2, 3, 4, 5), small(3, 5, 6)]
    yield Sample("MatMul", 13, aligned, constants=_ONE, admits=1, note="constant right")
    yield Sample("MatMul", 9, aligned, constants=_ONE, admits=1, note="constant right")


def _integer() -> Iterator[Sample]:
    for note, (left, right, admits) in _SHAPES.items():
        if len(left) < 2 or len(right) < 2:
            continue
        for zeros in (
            [],
            [np.uint8(3)],
            [np.uint8(3), np.uint8(2)],
            [None, small(right[-1], **_U8)],
        ):
            operands = [small(*left, **_U8), small(*right, **_U8), *map(_scalar, zeros)]
            yield Sample("MatMulInteger", 10, operands, admits=admits, note=note)
    rows = [small(3, 4, 5, **_U8), small(5, 6, **_U8), small(4, 1, **_U8)]
    yield Sample("MatMulInteger", 10, rows, admits=0, note="zero point per row", runtime="ort")


def _quantized() -> Iterator[Sample]:
    for version in versions("QLinearMatMul"):
        for note, (left, right, admits) in _SHAPES.items():
            if len(left) < 2 or len(right) < 2:
                continue
            columns = np.arange(1, right[-1] + 1, dtype=np.float32) / 4
            for scale, zero in (
                (np.float32(0.25), np.uint8(2)),
                (columns, small(right[-1], **_U8)),
            ):
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


def _scalar(value: Any) -> Array | None:
    return None if value is None else np.asarray(value)


SAMPLES: list[Sample] = [*_matmul(), *_integer(), *_quantized(), *_gemm(), *_einsum(), *_det()]
