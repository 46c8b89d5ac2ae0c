"""The strategy of the plugin, by name, as a value, and by itself."""

from __future__ import annotations

import pytest
from relayout_example_plugin import HILL_CLIMB

import relayout
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant
from relayout.cli.demo_model import network

READS_LAST = LayoutProblem(
    (
        Operator("input", (), (0,), (Variant((), (0,)),)),
        Operator("agnostic", (0,), (1,), (Variant((0,), (0,)), Variant((1,), (1,)))),
        Operator("demanding", (1,), (), (Variant((1,), ()),)),
    ),
    (Value("x", ("NCHW", "NHWC"), 2), Value("y", ("NCHW", "NHWC"), 3)),
)
"""As given y is copied for 3; if the agnostic operator reads NHWC, x is copied for 2."""


def test_it_takes_the_cheaper_variant() -> None:
    found = HILL_CLIMB(READS_LAST)
    assert (found.choice, found.cost) == ((0, 1, 0), 2)


def test_without_time_it_changes_nothing() -> None:
    found = HILL_CLIMB(READS_LAST, seconds=0.0)
    assert (found.choice, found.cost) == ((0, 0, 0), 3)


@pytest.mark.parametrize("strategy", ["hill-climb", HILL_CLIMB], ids=["name", "value"])
def test_it_removes_transposes_but_proves_nothing(strategy: str | relayout.Strategy) -> None:
    result = relayout.optimize(network(), strategy=strategy, verify=False)
    assert (result.before.transposes, result.after.transposes) == (8, 2)
    assert not result.record().optimal
    with pytest.raises(relayout.RelayoutError, match="only the exact strategy proves"):
        result.certificate()


def test_it_is_compared_with_the_others() -> None:
    record = relayout.compare_strategies(network(), verify=False)
    costs = {strategy.name: strategy.cost for strategy in record.strategies}
    assert costs["exact"] <= costs["hill-climb"] <= costs["naive"]
