"""The law of the operator rules, for every sample and every order."""

from __future__ import annotations

from itertools import product

import pytest

from relayout.graph.read import shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal
from relayout.ops.registry import FACTS, rule_of, transport
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Array, Sample


def _lead_rank(sample: Sample) -> int:
    view = law.view_of(sample)
    lead = sample.inputs[rule_of(view).lead(view)]
    assert lead is not None
    return lead.ndim


@pytest.mark.parametrize("sample", ALL, ids=lambda sample: sample.id)
def test_restated_node_gives_the_permuted_result(sample: Sample) -> None:
    others = [order for order in law.orders(_lead_rank(sample)) if not order.is_identity]
    answers = [law.check(sample, order) for order in others]
    admitted = [answer for answer in answers if not isinstance(answer, Refusal)]
    assert len(admitted) >= (len(others) if sample.admits is None else sample.admits), [
        answer.reason for answer in answers if isinstance(answer, Refusal)
    ]


PRODUCTS = [sample for sample in ALL if sample.op_type in {"Conv", "Gemm", "MatMul"}]
SWAP = Permutation.of(1, 0)


@pytest.mark.parametrize("sample", PRODUCTS, ids=lambda sample: sample.id)
def test_the_factors_of_a_product_have_a_say_of_their_own(sample: Sample) -> None:
    for operand in (0, 1):
        factor = sample.inputs[operand]
        assert factor is not None
        for order in law.orders(factor.ndim):
            law.check_joint(sample, operand, order)


def test_two_matrices_and_their_product_are_stored_in_every_combination() -> None:
    flat = [s for s in PRODUCTS if s.version >= 13 and all(x.ndim == 2 for x in _factors(s))]
    assert {sample.op_type for sample in flat} == {"Gemm", "MatMul"}
    for sample in flat:
        for operand in (0, 1):
            forms = law.check_joint(sample, operand, SWAP)
            found = {(*form.inputs[:2], *form.outputs) for form in forms}
            assert found == set(product((None, SWAP), repeat=3))


def _factors(sample: Sample) -> list[Array]:
    return [x for x in sample.inputs[:2] if x is not None]


@pytest.mark.parametrize("sample", ALL, ids=lambda sample: sample.id)
def test_pull_is_the_reverse_of_transport(sample: Sample) -> None:
    view = law.view_of(sample)
    rule = rule_of(view)
    rank = view.result_rank(0)
    if rank is None:
        return
    for wanted in law.orders(rank):
        lead = rule.pull(view, wanted)
        if isinstance(lead, Refusal):
            continue
        answer = transport(view, lead)
        if isinstance(answer, Refusal):
            continue
        result = answer.outputs[0] or Permutation.identity(rank)
        shape = shape_of(view.node.outputs[0]) or (None,) * rank
        # Axes of length 1 may stand anywhere.
        assert result.settled(shape) == wanted.settled(shape), (
            f"{sample.id}: pulled {wanted}, got {result}"
        )


def test_every_rule_has_a_sample() -> None:
    sampled = {(sample.domain, sample.op_type) for sample in ALL}
    without = [key for key, facts in FACTS.items() if not facts.rule.barrier and key not in sampled]
    assert not without
