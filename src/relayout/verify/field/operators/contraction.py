"""Products of matrices, and sums of products by equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx

from relayout.verify.field.residues import added, multiplied, subtracted, summed
from relayout.verify.field.values import residue_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

SPARE_LABELS = "αβγδεζηθικλμ"
"""Labels for the axes of an ellipsis, from the last one on."""


def matmul(call: FieldCall) -> FieldTensor:
    return call.like(multiplied_matrices(call, call.residues(0), call.residues(1)))


def multiplied_matrices(call: FieldCall, left: Residues, right: Residues) -> Residues:
    """As MatMul: a vector on the left is a row, on the right a column."""
    rows = left[None, :] if left.ndim == 1 else left
    columns = right[:, None] if right.ndim == 1 else right
    result = call.product(rows, columns)
    if right.ndim == 1:
        result = result[..., 0]
    return result if left.ndim > 1 else np.take(result, 0, -1 if right.ndim == 1 else -2)


def gemm(call: FieldCall) -> FieldTensor:
    left, right = call.residues(0), call.residues(1)
    left = left.T if call.integer("transA", 0) else left
    right = right.T if call.integer("transB", 0) else right
    result = multiplied(call.product(left, right), call.encoded("alpha", 1.0))
    if call.has(2):
        rest = multiplied(call.residues(2), call.encoded("beta", 1.0))
        result = added(result, rest)
    return call.like(result)


def matmul_integer(call: FieldCall) -> FieldTensor:
    left, right = call.residues(0), call.residues(1)
    if call.has(2):
        zero = call.residues(2)
        left = subtracted(left, zero[:, None] if zero.ndim == 1 and zero.size > 1 else zero)
    if call.has(3):
        right = subtracted(right, call.residues(3))
    return residue_tensor(multiplied_matrices(call, left, right), onnx.TensorProto.INT32)


# equations


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A tensor whose axes have labels, each once."""

    numbers: Residues
    labels: str


def einsum(call: FieldCall) -> FieldTensor:
    operands = [tensor.residues() for tensor in call.tensors()]
    terms, wanted = _parsed(call.text("equation", ""), [each.ndim for each in operands])
    left = _single(operands[0], terms[0])
    for i, operand in enumerate(operands[1:], 1):
        needed = wanted + "".join(terms[i + 1 :])
        left = _joined(call, left, _single(operand, terms[i]), needed)
    left = _without(left, "".join(label for label in left.labels if label not in wanted))
    return call.like(left.numbers.transpose([left.labels.index(label) for label in wanted]))


def _parsed(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with an ellipsis spelt out."""
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"the equation has {len(terms)} operands")
    spare = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    most = max((n for n, term in zip(spare, terms, strict=True) if "..." in term), default=0)
    spelt = [
        term.replace("...", SPARE_LABELS[:most][most - n :] if n else "")
        for term, n in zip(terms, spare, strict=True)
    ]
    if not arrow:
        plain = "".join(terms).replace("...", "")
        wanted = "..." + "".join(sorted(label for label in plain if plain.count(label) == 1))
    return spelt, wanted.replace("...", SPARE_LABELS[:most])


def _single(numbers: Residues, labels: str) -> _Labelled:
    """An operand with each label once: repeated ones are a diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            numbers = np.diagonal(numbers, 0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return _Labelled(numbers, labels)


def _without(operand: _Labelled, labels: str) -> _Labelled:
    """Summed over some labels."""
    if not labels:
        return operand
    axes = [operand.labels.index(label) for label in labels]
    rest = "".join(label for label in operand.labels if label not in labels)
    return _Labelled(summed(operand.numbers, axes), rest)


def _joined(call: FieldCall, left: _Labelled, right: _Labelled, needed: str) -> _Labelled:
    """The product of two operands, summed over the labels that nothing needs."""
    left = _without(left, _alone(left.labels, right.labels + needed))
    right = _without(right, _alone(right.labels, left.labels + needed))
    shared = [label for label in left.labels if label in right.labels]
    batch = "".join(label for label in shared if label in needed)
    inner = "".join(label for label in shared if label not in needed)
    rows = _alone(left.labels, right.labels)
    columns = _alone(right.labels, left.labels)
    lengths = _lengths(left) | {k: n for k, n in _lengths(right).items() if n != 1}
    a = _grouped(left, (batch, rows, inner), lengths)
    b = _grouped(right, (batch, inner, columns), lengths)
    result = call.product(a, b)
    labels = batch + rows + columns
    return _Labelled(result.reshape([lengths[label] for label in labels]), labels)


def _alone(labels: str, others: str) -> str:
    return "".join(label for label in labels if label not in others)


def _lengths(operand: _Labelled) -> dict[str, int]:
    return dict(zip(operand.labels, operand.numbers.shape, strict=True))


def _grouped(operand: _Labelled, groups: tuple[str, str, str], lengths: dict[str, int]) -> Residues:
    """A batch of matrices, each axis of which is a group of labels."""
    order = [operand.labels.index(label) for group in groups for label in group]
    whole = [[lengths[label] for label in group] for group in groups]
    shape = [length for group in whole for length in group]
    numbers = np.broadcast_to(operand.numbers.transpose(order), shape)
    return numbers.reshape([int(np.prod(group, dtype=np.int64)) for group in whole])


KERNELS: dict[str, FieldKernel] = {
    "MatMul": matmul,
    "Gemm": gemm,
    "MatMulInteger": matmul_integer,
    "Einsum": einsum,
}
