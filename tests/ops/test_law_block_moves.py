"""The law for DepthToSpace and SpaceToDepth between any two orders."""

from __future__ import annotations

from itertools import product

import pytest

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import ask_separate
from relayout.targets.target import NHWC, ONNX
from tests.ops import law
from tests.samples.sample import Sample, small

TRIED = 45
"""Pairs of orders per sample, spread over all there are."""

SHAPES = {"DepthToSpace": (2, 12, 3, 5), "SpaceToDepth": (2, 3, 4, 6)}
FORMS = [("DepthToSpace", "DCR"), ("DepthToSpace", "CRD"), ("SpaceToDepth", "")]


@pytest.mark.parametrize(("op_type", "mode"), FORMS)
def test_a_block_move_between_two_orders_is_a_transpose(op_type: str, mode: str) -> None:
    attributes = {"blocksize": 2, **({"mode": mode} if mode else {})}
    sample = Sample(op_type, 13, [small(*SHAPES[op_type])], attributes)
    view = law.view_of(sample)
    pairs = list(product(law.orders(4), repeat=2))
    for order, wanted in pairs[:: len(pairs) // TRIED]:
        answer = ask_separate(ONNX.rule_of(view), view, [order], wanted)
        assert isinstance(answer, Transport)
        assert answer.changes.copies
        law.hold(sample, answer)


def test_nothing_is_offered_where_a_block_does_not_fit_or_a_kernel_is_wanted() -> None:
    order = Permutation.of(0, 2, 3, 1)
    torn = Sample("SpaceToDepth", 13, [small(2, 3, 5, 6)], {"blocksize": 2})
    whole = Sample("SpaceToDepth", 13, [small(2, 3, 4, 6)], {"blocksize": 2})
    for sample, target in ((torn, ONNX), (whole, NHWC)):
        view = law.view_of(sample)
        assert isinstance(ask_separate(target.rule_of(view), view, [order], None), Refusal)
