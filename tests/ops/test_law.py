"""The law of the operator rules, for every sample and every order."""

from __future__ import annotations

from itertools import product

import pytest

from relayout.graph.read import NodeView, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
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
def test_the_factors_of_a_product_have_orders_of_their_own(sample: Sample) -> None:
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
def test_pull_finds_every_result_that_transport_gives(sample: Sample) -> None:
    """A refusal to pull an order in which the result can come out loses what could be saved."""
    view = law.view_of(sample)
    for order in law.orders(_lead_rank(sample)):
        answer = transport(view, order)
        if order.is_identity or isinstance(answer, Refusal):
            continue
        result = answer.outputs[0]
        if result is None:
            rank = view.result_rank(0)
            assert rank is not None, f"{sample.id}: the result is as it was, whatever that is"
            result = Permutation.identity(rank)
        assert isinstance(result, Permutation)
        pulled = rule_of(view).pull(view, result)
        assert not isinstance(pulled, Refusal), f"{sample.id}: {order} gives {result}, {pulled}"
        assert_gives(result, view, pulled)


@pytest.mark.parametrize("sample", ALL, ids=lambda sample: sample.id)
def test_what_is_pulled_gives_the_result_that_is_wanted(sample: Sample) -> None:
    view = law.view_of(sample)
    rank = view.result_rank(0)
    for wanted in () if rank is None else law.orders(rank):
        pulled = rule_of(view).pull(view, wanted)
        if not isinstance(pulled, Refusal) and isinstance(transport(view, pulled), Transport):
            assert_gives(wanted, view, pulled)


def assert_gives(wanted: Permutation, view: NodeView, pulled: Permutation) -> None:
    """Axes of length 1 may stand anywhere."""
    answer = transport(view, pulled)
    assert isinstance(answer, Transport), f"{wanted} pulled {pulled}, {answer}"
    result = answer.outputs[0] or Permutation.identity(wanted.rank)
    assert isinstance(result, Permutation)
    shape = shape_of(view.node.outputs[0])
    if shape is None or len(shape) != wanted.rank:  # onnx's inference is silent, or mistaken
        shape = (None,) * wanted.rank
    assert result.settled(shape) == wanted.settled(shape), f"{wanted} pulled {pulled}, {result}"


def test_every_rule_has_a_sample() -> None:
    sampled = {(sample.domain, sample.op_type) for sample in ALL}
    without = [key for key, facts in FACTS.items() if not facts.rule.barrier and key not in sampled]
    assert not without
