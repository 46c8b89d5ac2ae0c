"""The law for orders that each operand and the result choose for themselves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import ask_separate
from relayout.targets.target import ONNX, Target, target_of
from tests.ops import law
from tests.samples import product as products
from tests.samples.sample import Array, Sample, small

WITH_EINSUM = target_of("onnx", einsum=True)
TRIED = 25
"""Combinations of orders per sample, spread over all there are."""

MATMULS = [
    sample
    for sample in products.SAMPLES
    if sample.op_type == "MatMul" and sample.version == 13 and sample.note != "as a Conv"
]
EINSUMS = [s for s in products.SAMPLES if s.op_type == "Einsum"]
BROADCAST = {"broadcast batch", "unit batch weight", "left is one matrix"}
VECTORS = {s.note for s in MATMULS if any(x is not None and x.ndim == 1 for x in s.inputs)}


def answers(sample: Sample, target: Target) -> list[Transport | Refusal]:
    view = law.view_of(sample)
    rule = target.rule_of(view)
    ranks = [x.ndim for x in sample.inputs if x is not None]
    choices = list(product(*map(law.orders, (*ranks, view.result_rank(0) or 0))))
    spread = choices[:: max(1, len(choices) // TRIED)]
    return [ask_separate(rule, view, orders[:-1], orders[-1]) for orders in spread]


@pytest.mark.parametrize("runtime", ["reference", "ort"])
@pytest.mark.parametrize("sample", MATMULS, ids=lambda sample: sample.id)
def test_a_product_as_einsum(sample: Sample, runtime: str) -> None:
    found = answers(sample, WITH_EINSUM)
    stated = [answer for answer in found if isinstance(answer, Transport)]
    assert len(stated) == (0 if sample.note in BROADCAST | VECTORS else len(found))
    for answer in stated:
        law.hold(replace(sample, runtime=runtime), answer)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_other_types_that_runtimes_have(dtype: type) -> None:
    operands = [small(2, 3, 4, dtype=dtype), small(2, 4, 5, dtype=dtype)]
    sample = Sample("MatMul", 13, operands, runtime="ort")
    for answer in answers(sample, WITH_EINSUM):
        assert isinstance(answer, Transport)
        law.hold(sample, answer)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint32])
def test_types_that_runtimes_lack(dtype: type) -> None:
    left, right = small(2, 3, 4, low=0), small(2, 4, 5, low=0)
    operands: list[Array] = [left.astype(dtype), right.astype(dtype)]
    found = answers(Sample("MatMul", 13, operands), WITH_EINSUM)
    assert all(isinstance(answer, Refusal) for answer in found)


def test_models_older_than_einsum() -> None:
    sample = Sample("MatMul", 11, [small(2, 3, 4), small(2, 4, 5)])
    assert all(isinstance(answer, Refusal) for answer in answers(sample, WITH_EINSUM))
    newer = replace(sample, version=12)
    assert all(isinstance(answer, Transport) for answer in answers(newer, WITH_EINSUM))


def test_nothing_is_stated_so_unless_asked() -> None:
    sample = Sample("MatMul", 13, [small(2, 3, 4), small(2, 4, 5)])
    assert all(isinstance(answer, Refusal) for answer in answers(sample, ONNX))


@pytest.mark.parametrize("sample", EINSUMS, ids=lambda sample: sample.id)
def test_an_equation_can_state_every_order(sample: Sample) -> None:
    found = answers(sample, ONNX)
    stated = [answer for answer in found if isinstance(answer, Transport)]
    assert stated
    assert len(stated) == len(found) or "..." in sample.note
    for answer in stated:
        law.hold(sample, answer)


def test_the_axes_under_dots_are_kept_together() -> None:
    sample = Sample("Einsum", 12, [small(2, 3, 4)], {"equation": "...i->...i"})
    view = law.view_of(sample)
    rule = ONNX.rule_of(view)
    identity = Permutation.identity(3)
    torn = ask_separate(rule, view, [Permutation.of(1, 0, 2)], identity)
    assert isinstance(torn, Refusal)
    transposed = ask_separate(rule, view, [Permutation.of(2, 0, 1)], identity)
    assert isinstance(transposed, Transport)
    assert transposed.changes.attributes == {"equation": "i...->...i"}
