"""The law of shuffles: entries in another order go in, and come out, as a restatement states it."""

from __future__ import annotations

import numpy as np
import pytest

from relayout.graph.read import shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle
from relayout.layout.transport import Transport
from relayout.ops.registry import FACTS
from relayout.ops.shuffles import RESULT
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Sample

LONGEST = 64


def shuffles(shape: tuple[object, ...]) -> list[Shuffle]:
    """One order of the entries of every axis: neither its own inverse nor a reversal."""
    found = []
    for axis, length in enumerate(shape):
        if not isinstance(length, int) or not 1 < length <= LONGEST:
            continue
        places = np.random.default_rng(length + axis).permutation(length)
        shuffle = Shuffle.of(len(shape), axis, places) or Shuffle.of(
            len(shape), axis, np.roll(np.arange(length), 1)
        )
        assert shuffle is not None
        found.append(shuffle)
    return found


def _checked(sample: Sample) -> list[Transport]:
    view = law.view_of(sample)
    found: list[Transport] = []
    for index, x in enumerate(sample.inputs):
        if x is None or index in sample.constants:
            continue
        for shuffle in shuffles(x.shape):
            answers = law.check_shuffle(sample, index, shuffle)
            assert all(answer.inputs[index] == shuffle for answer in answers)
            found += answers
    for shuffle in shuffles(shape_of(view.node.outputs[0]) or ()):
        answers = law.check_shuffle(sample, RESULT, shuffle)
        assert all(answer.outputs[0] == shuffle for answer in answers)
        found += answers
    return found


@pytest.mark.parametrize("sample", ALL, ids=lambda sample: sample.id)
def test_entries_in_another_order(sample: Sample) -> None:
    _checked(sample)


VIEWS = [sample for sample in ALL if sample.op_type in {"Flatten", "Reshape"}]


@pytest.mark.parametrize("sample", VIEWS, ids=lambda sample: sample.id)
def test_axes_that_are_merged_or_split_in_another_order(sample: Sample) -> None:
    view = law.view_of(sample)
    ranks = {0: view.rank(0), RESULT: view.result_rank(0)}
    for port, rank in ranks.items():
        for order in law.orders(rank or 0):
            if not order.is_identity:
                law.check_shuffle(sample, port, order)


def test_every_operator_with_a_rule_of_its_own_takes_some_shuffle() -> None:
    """A rule that refuses everything would pass the law."""
    own = {key for key, facts in FACTS.items() if facts.shuffles is not None}
    assert len(own) > 20
    answered = {
        (sample.domain, sample.op_type)
        for sample in ALL
        if (sample.domain, sample.op_type) in own and _checked(sample)
    }
    merged = {
        (sample.domain, sample.op_type)
        for sample in VIEWS
        for order in law.orders(law.view_of(sample).rank(0) or 0)
        if law.check_shuffle(sample, 0, order)
    }
    assert own - answered - merged == set()


def test_a_merge_of_transposed_axes_is_a_shuffle_of_the_merged_one() -> None:
    to_nhwc = Permutation.of(0, 2, 3, 1)
    four = [sample for sample in VIEWS if law.view_of(sample).rank(0) == 4]
    answers = [answer for sample in four for answer in law.check_shuffle(sample, 0, to_nhwc)]
    assert any(isinstance(answer.outputs[0], Shuffle) for answer in answers)
