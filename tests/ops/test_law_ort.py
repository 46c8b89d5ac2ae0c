"""The law for what only ONNX Runtime knows, with its own optimiser off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import ask
from relayout.targets.target import ORT
from tests.ops import law
from tests.samples import product
from tests.samples.sample import Array, Sample, small

STANDARD = [
    replace(sample, runtime="ort")
    for sample in product.SAMPLES
    if sample.op_type == "MatMul" and sample.version == 13
]
LONG = Sample("MatMul", 13, [small(2, 3, 2, 4, 5), small(2, 3, 2, 5, 6)], runtime="ort")
DOUBLE = Sample(
    "MatMul",
    13,
    [small(3, 4, 5, dtype=np.float64), small(3, 5, 6, dtype=np.float64)],
    runtime="ort",
)
PRODUCTS = [*STANDARD, *product.FUSED, LONG, DOUBLE]


@pytest.mark.parametrize("sample", PRODUCTS, ids=lambda sample: sample.id)
def test_factors_in_any_orders(sample: Sample) -> None:
    for operand in (0, 1):
        factor = sample.inputs[operand]
        assert factor is not None
        for order in law.orders(factor.ndim):
            law.check_joint(sample, operand, order, ORT)


@pytest.mark.parametrize("sample", PRODUCTS, ids=lambda sample: sample.id)
def test_the_result_follows_its_lead(sample: Sample) -> None:
    view = law.view_of(sample)
    lead = sample.inputs[ORT.rule_of(view).lead(view)]
    assert lead is not None
    others = [order for order in law.orders(lead.ndim) if not order.is_identity]
    answers = [law.check(sample, order, ORT) for order in others]
    admitted = [answer for answer in answers if not isinstance(answer, Refusal)]
    assert len(admitted) >= (sample.admits or 0)


def _batches(rank: int) -> Sample:
    left: Array = small(*(2, 3)[: rank - 2], 4, 5)
    right: Array = small(*(2, 3)[: rank - 2], 5, 6)
    return Sample("MatMul", 13, [left, right], runtime="ort")


@pytest.mark.parametrize(
    ("rank", "perm"),
    [
        *[(3, (0, 2, 1)), (3, (1, 0, 2)), (3, (1, 2, 0))],
        *[(4, (0, 1, 3, 2)), (4, (1, 2, 0, 3)), (4, (1, 2, 3, 0))],
    ],
)
def test_a_factor_under_a_transpose_that_the_runtime_reads(
    rank: int, perm: tuple[int, ...]
) -> None:
    """Each factor alone, and the result of both stays as it was or is transposed."""
    order = Permutation(perm).inverse()
    for operand in (0, 1):
        forms = law.check_joint(_batches(rank), operand, order, ORT)
        alone = [f for f in forms if f.inputs[operand] == order and f.inputs[1 - operand] is None]
        swap = Permutation((*range(rank - 2), rank - 1, rank - 2))
        assert {form.outputs for form in alone} == {(None,), (swap,)}


def _with_vector(*shapes: tuple[int, ...], **attributes: float) -> Sample:
    factors = [small(*shape) for shape in shapes]
    if not attributes:
        return Sample("MatMul", 13, factors, runtime="ort")
    return Sample("FusedMatMul", 1, factors, attributes, domain="com.microsoft", runtime="ort")


@pytest.mark.parametrize("alpha", [{}, {"alpha": 2.0}], ids=["MatMul", "FusedMatMul"])
def test_a_product_with_a_vector_is_never_given_flags(alpha: dict[str, float]) -> None:
    for shapes in (((3, 4, 5), (5,)), ((5,), (3, 5, 6))):
        matrices = 0 if len(shapes[0]) > 1 else 1
        sample = _with_vector(*shapes, **alpha)
        for order in law.orders(3):
            answer = law.check(sample, order, ORT)
            assert isinstance(answer, Transport)
            assert not {"transA", "transB"} & {k for k, v in answer.changes.attributes.items() if v}
            assert answer.changes.op_type is None
            for form in law.check_joint(sample, matrices, order, ORT):
                assert form.outputs == answer.outputs


def test_a_product_with_a_vector_has_two_orders_of_matrices_for_each_result() -> None:
    sample = _with_vector((3, 4, 5), (5,))
    (form,) = law.check_joint(sample, 0, Permutation.of(1, 0, 2), ORT)
    assert form.inputs == (Permutation.of(1, 2, 0), None)
    assert form.outputs == (Permutation.of(1, 0),)


def test_flags_beside_a_vector() -> None:
    """The runtime reads transB as it is stated, and transA otherwise."""
    stated = _with_vector((5,), (3, 6, 5), transB=1)
    swapped = law.check(stated, Permutation.of(0, 2, 1), ORT)
    assert isinstance(swapped, Transport)
    assert swapped.changes.operand_order is None
    misread = law.view_of(_with_vector((3, 5, 5), (5,), transA=1))
    assert isinstance(ask(ORT.rule_of(misread), misread, Permutation.of(0, 2, 1)), Refusal)


def test_integers_have_no_flags() -> None:
    operands = [small(3, 4, 5, dtype=np.int32), small(3, 5, 6, dtype=np.int32)]
    forms = law.check_joint(Sample("MatMul", 13, operands), 0, Permutation.of(0, 2, 1), ORT)
    assert {form.changes.op_type for form in forms} == {None}
