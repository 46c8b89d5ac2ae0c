"""The law of the operator rules, for every sample and every order."""

from __future__ import annotations

import pytest

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal
from relayout.ops.registry import RULES, rule_of, transport
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Sample


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


WITH_SIDES = [sample for sample in ALL if RULES[sample.domain, sample.op_type].sides]


@pytest.mark.parametrize("sample", WITH_SIDES, ids=lambda sample: sample.id)
def test_a_side_has_a_say_of_its_own(sample: Sample) -> None:
    for side in rule_of(law.view_of(sample)).sides:
        operand = sample.inputs[side.operand]
        assert operand is not None
        for order in law.orders(operand.ndim):
            if not order.is_identity:
                law.check(sample, order, side)


def test_both_factors_of_a_product_of_matrices_may_be_transposed() -> None:
    matrices = [s for s in WITH_SIDES if s.op_type in {"Gemm", "MatMul"} and s.version >= 13]
    flat = [s for s in matrices if all(x is None or x.ndim == 2 for x in s.inputs[:2])]
    swap = Permutation.of(1, 0)
    assert flat
    for sample in flat:
        for side in rule_of(law.view_of(sample)).sides:
            assert not isinstance(law.check(sample, swap, side), Refusal)


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
        assert result == wanted, f"{sample.id}: pulled {wanted}, got {result}"


def test_every_rule_has_a_sample() -> None:
    sampled = {(sample.domain, sample.op_type) for sample in ALL}
    without = [key for key, rule in RULES.items() if not rule.barrier and key not in sampled]
    assert not without
