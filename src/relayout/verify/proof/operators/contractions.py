"""Sums of products over named indices, in which all operators of this kind meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.constants import constant
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import Length, plus
from relayout.verify.proof.openings import opened_axes
from relayout.verify.proof.operators.elementwise import aligned, elementwise
from relayout.verify.proof.operators.linear import (
    MULTIPLY,
    added,
    factor_of,
    multiplied,
    scaled,
)
from relayout.verify.proof.operators.moving import JOINED, joined
from relayout.verify.proof.operators.resizing import enlarged, resized, walked_alone
from relayout.verify.proof.table import NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import array_of, transposed, unsqueezed

SUM = "sum"


def contracted(
    table: TermTable, operands: Sequence[TermValue], columns: Sequence[Column]
) -> TermValue:
    """The product of the operands, summed over the columns that are not kept."""
    kept = [column for column in columns if column.kept]
    summed = any(
        operands[number].known_dims[dim]
        for column in columns
        if not column.kept
        for number, dim in column.dims
    )
    if not summed and len(operands) == 1:
        return operands[0].with_dims([operands[0].known_dims[c.dims[0][1]] for c in kept])
    if not summed and not any(column.ordered for column in kept):
        return multiplied(table, [_along(kept, i, value) for i, value in enumerate(operands)])
    key = ("contract",) if summed else MULTIPLY
    factor, bare = _without_factors(table, operands)
    before = _before_resizing(table, bare, columns) if summed else None
    if before is None:
        before = combined(table, key, bare, columns, commutative=True)
    return scaled(table, before, factor)


def _before_resizing(
    table: TermTable, operands: Sequence[TermValue], columns: Sequence[Column]
) -> TermValue | None:
    """A product with a constant in the form in which nothing that it reads was resized before."""
    if table.ledger is None or len(operands) != 2:
        return None
    for number in (0, 1):
        if operands[1 - number].term in table.arrays:
            found = _by_parts(table, operands, columns, number)
            return found or _then_resized(table, operands, columns, number)
    return None


def _then_resized(
    table: TermTable, operands: Sequence[TermValue], columns: Sequence[Column], number: int
) -> TermValue | None:
    """A product of what was resized along indices that it keeps, taken before that."""
    image = enlarged(table, operands[number])
    places = None if image is None else walked_alone(columns, number, image.places)
    if image is None or places is None:
        return None
    table.step("products moved past resizing")
    product_before = contracted(table, _with(operands, number, image.source), columns)
    return resized(table, image.resizing.at(places), product_before)


def _by_parts(
    table: TermTable, operands: Sequence[TermValue], columns: Sequence[Column], number: int
) -> TermValue | None:
    """A sum over what was put together along it, some of it resized: a product for each of these.

    What was not resized stays together.
    """
    opened = opened_axes(table, JOINED, operands[number])
    if opened is None:
        return None
    place = next(iter(opened.places.values()))
    summed = [dict(c.dims) for c in columns if not c.kept and (number, place) in c.dims]
    other = summed[0].get(1 - number) if len(summed) == 1 else None
    lengths = [part.shape[place] for part in opened.operands]
    is_resized = [enlarged(table, part) is not None for part in opened.operands]
    weight = operands[1 - number]
    if other is None or not any(is_resized) or weight.shape[other] != _total(lengths):
        return None
    known = [int(length) for length in lengths if isinstance(length, int)]
    if len(known) < len(lengths):
        return None
    starts = [sum(known[:i]) for i in range(len(known))]
    groups = [[i] for i, one in enumerate(is_resized) if one]
    rest = [i for i, one in enumerate(is_resized) if not one]
    table.step("sums over parts that were resized")
    found = []
    for group in [*groups, *([rest] if rest else [])]:
        parts = [opened.operands[i] for i in group]
        part = parts[0] if len(parts) == 1 else joined(table, parts, place)
        rows = [row for i in group for row in range(starts[i], starts[i] + known[i])]
        own = constant(table, np.take(array_of(table, weight), rows, other))
        found.append(
            contracted(table, _with(_with(operands, number, part), 1 - number, own), columns)
        )
    return added(table, found)


def _total(lengths: Sequence[Length]) -> Length:
    total: Length = 0
    for length in lengths:
        total = plus(total, length)
    return total


def _with(operands: Sequence[TermValue], number: int, value: TermValue) -> list[TermValue]:
    return [value if i == number else operand for i, operand in enumerate(operands)]


def _along(columns: Sequence[Column], number: int, value: TermValue) -> TermValue:
    """An operand with a dimension for each column, which it may have once."""
    places = [dict(column.dims).get(number) for column in columns]
    return value.with_dims([() if p is None else value.known_dims[p] for p in places])


def _without_factors(
    table: TermTable, operands: Sequence[TermValue]
) -> tuple[float, list[TermValue]]:
    """The factors of a product's operands, taken out of it where rounding may change."""
    factor, bare = 1.0, []
    for value in operands:
        number, inner = factor_of(table, value)
        taken = number != 1 and table.step("factors moved past products")
        factor *= number if taken else 1
        bare.append(inner if taken else value)
    return factor, bare


def product(table: TermTable, left: TermValue, right: TermValue) -> TermValue:
    """The product of matrices, in batches that are broadcast."""
    row, column = left.rank == 1, right.rank == 1
    left = unsqueezed(left, [0]) if row else left
    right = unsqueezed(right, [1]) if column else right
    rank = max(left.rank, right.rank)
    columns = []
    for axis in range(rank - 2):
        places = ((0, axis - rank + left.rank), (1, axis - rank + right.rank))
        dims = tuple(place for place in places if place[1] >= 0)
        columns.append(aligned(table, [left, right], dims))
    columns.append(Column(((0, left.rank - 2),)))
    columns.append(Column(((1, right.rank - 1),)))
    columns.append(Column(((0, left.rank - 1), (1, right.rank - 2)), SUM, kept=False))
    result = contracted(table, [left, right], columns)
    gone = ([rank - 2] if row else []) + ([rank - 1] if column else [])
    return result.with_dims([dim for i, dim in enumerate(result.known_dims) if i not in gone])


def _matmul(call: NodeCall) -> list[TermValue]:
    return [product(call.table, call.operand(0), call.operand(1))]


def _fused_matmul(call: NodeCall) -> list[TermValue]:
    sides = []
    for number, name in ((0, "A"), (1, "B")):
        value = call.operand(number)
        rank = value.rank
        perm = list(range(rank))
        if call.attribute(f"transBatch{name}", 0):
            perm = [*perm[1:-1], 0, perm[-1]]
        if call.attribute(f"trans{name}", 0) and rank > 1:
            perm[-1], perm[-2] = perm[-2], perm[-1]
        sides.append(transposed(value, perm))
    result, alpha = call.apply("MatMul", *sides), call.attribute("alpha", 1.0)
    return [result if alpha == 1 else call.apply("Mul", result, call.number(alpha))]


def gemm(call: NodeCall) -> list[TermValue]:
    left, right = call.operand(0), call.operand(1)
    left = transposed(left, (1, 0)) if call.attribute("transA", 0) else left
    right = transposed(right, (1, 0)) if call.attribute("transB", 0) else right
    result = scaled(call.table, product(call.table, left, right), call.attribute("alpha", 1.0))
    bias = call.optional(2)
    if bias is None:
        return [result]
    bias = scaled(call.table, bias, call.attribute("beta", 1.0))
    return [added(call.table, [result, bias])]


def _einsum(call: NodeCall) -> list[TermValue]:
    operands = call.present()
    equation = call.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    ranks = [value.rank for value in operands]
    labels = [_labels(text, rank) for text, rank in zip(left.split(","), ranks, strict=True)]
    if any(len(set(own)) < len(own) for own in labels):
        raise NotKnownError("Einsum along a diagonal")
    spread = sorted({label for own in labels for label in own if label.startswith(".")})
    every = [label for own in labels for label in own]
    if arrow:
        head, dots, tail = right.partition("...")
        kept = [*head, *(reversed(spread) if dots else ()), *tail]
    else:
        kept = [
            *reversed(spread),
            *sorted(x for x in set(every) if every.count(x) == 1 and x not in spread),
        ]
    columns = [_column(label, labels, kept=True) for label in kept]
    gone = [label for label in dict.fromkeys(every) if label not in kept]
    columns += [_column(label, labels, kept=False) for label in gone]
    return [contracted(call.table, operands, columns)]


def _column(label: str, labels: list[list[str]], *, kept: bool) -> Column:
    dims = tuple((i, own.index(label)) for i, own in enumerate(labels) if label in own)
    return Column(dims, None if kept else SUM, kept=kept)


def _labels(text: str, rank: int) -> list[str]:
    """A name for each dimension; those of an ellipsis are numbered from the last one."""
    head, dots, tail = text.partition("...")
    between = rank - len(head) - len(tail) if dots else 0
    return [*head, *(f".{i:03}" for i in reversed(range(between))), *tail]


def _matmul_integer(call: NodeCall) -> list[TermValue]:
    left, right = call.operand(0), call.operand(1)
    zeros = [call.optional(2), call.optional(3)]
    if any(zero is not None and zero.pieces for zero in zeros):
        raise NotKnownError("zero points of rows or columns")
    for side, zero in enumerate(zeros):
        point = TermValue(call.table.term("left out"), ()) if zero is None else zero.with_dims(())
        value = (left, right)[side]
        moved = elementwise(call.table, "from zero point", [value, point])
        left, right = (moved, right) if side == 0 else (left, moved)
    return [product(call.table, left, right)]


RULES: dict[tuple[str, str], Rule] = {
    ("", "MatMul"): _matmul,
    ("", "Gemm"): gemm,
    ("", "Einsum"): _einsum,
    ("", "MatMulInteger"): _matmul_integer,
    ("com.microsoft", "FusedMatMul"): _fused_matmul,
}
