"""Regions that join what changed alike: what is taken in, and what is refused."""

from __future__ import annotations

import pytest

from relayout.assign.problem import LayoutProblem, Variant
from relayout.assign.strategies.registry import strategy_of
from tests.assign.test_strategies import NCHW, NHWC, Graph, chain, copies_of
from tests.assign.writing import left_by


def reasons(problem: LayoutProblem, name: str = "preset-plus") -> list[tuple[bool, str]]:
    return [(each.is_flipped, each.why) for each in strategy_of(name)(problem).regions]


def test_it_joins_whatever_that_costs_and_by_cost_it_does_not() -> None:
    """One copy at the entrance would do; to join costs one at each of two outputs."""
    graph = Graph()
    made = graph.tensor(graph.conv(graph.given()))
    graph.output(graph.tensor(made))
    graph.output(graph.tensor(made))
    problem = graph.problem()
    counts = {name: copies_of(problem, name) for name in ("preset", "preset-plus", "preset-cost")}
    assert counts == {"preset": 2, "preset-plus": 3, "preset-cost": 2}


@pytest.mark.parametrize("numbers", [1, 2, 3])
def test_what_joined_lets_what_comes_after_it_join(numbers: int) -> None:
    """Features between two regions of tensors: only once the first joined does the second."""
    problem = chain(("conv", *["tensor", "relu"] * numbers, "conv"))
    assert copies_of(problem, "preset") == 4
    assert copies_of(problem, "preset-plus") == 2
    (region,) = strategy_of("preset-plus")(problem).regions
    assert region.members == tuple(range(1, len(problem.operators) - 1))


def test_the_order_in_which_regions_stand_does_not_matter() -> None:
    """The second region in the list has to join before the first one can."""
    graph = Graph()
    feature = graph.conv(graph.given())
    first = graph.tensor(feature)
    between = graph.relu(first)
    graph.output(graph.conv(graph.tensor(between)))
    straight = graph.problem()
    order = [0, 1, 4, 2, 3, 5, 6]
    moved = LayoutProblem(tuple(straight.operators[i] for i in order), straight.values)
    assert copies_of(moved, "preset-plus") == copies_of(straight, "preset-plus") == 2


def test_inputs_that_changed_and_inputs_that_did_not_do_not_join() -> None:
    graph = Graph()
    feature, given = graph.conv(graph.given()), graph.given()
    added = graph.add(
        "add", (feature, given), Variant((NCHW, NCHW), (NCHW,)), Variant((NHWC, NHWC), (NHWC,))
    )
    graph.values[added] = graph.values[graph.tensor(feature)]
    graph.operators.pop()
    graph.values.pop()
    graph.output(added)
    found = reasons(graph.problem())
    assert found[1] == (False, "add reads conv1, which changed, and input2, which did not")


def test_an_operator_that_mixes_axes_is_named() -> None:
    graph = Graph()
    flat = graph.reshape(graph.conv(graph.given()))
    graph.values[flat] = graph.values[graph.tensor(flat)]
    graph.operators.pop()
    graph.values.pop()
    graph.output(flat)
    assert reasons(graph.problem())[1] == (False, "reshape runs in the given order only")


def test_a_region_that_reads_nothing_changed_stays() -> None:
    assert reasons(chain(("tensor", "tensor"))) == [
        (False, "everything it reads is stored as given")
    ]


def test_why_regions_of_preset_are_flipped_or_kept() -> None:
    found = reasons(chain(("conv", "relu", "tensor", "conv", "conv")), "preset")
    assert found == [
        (True, "wanted by conv"),
        (False, "not features, and no operator in it wants another order"),
        (True, "wanted by conv and 1 more"),
    ]
    graph = Graph()
    middle = graph.relu(graph.conv(graph.given()), graph.given(), graph.given())
    graph.output(middle)
    why = "no fewer demands at its border are for the given order than for another"
    assert reasons(graph.problem(), "preset")[1] == (False, why)
    assert reasons(chain(("relu", "relu")), "preset") == [
        (False, "no operator in it wants another order")
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [("float[1,2,4,5,1] k", 4), ("float[2,1,1,1] k", 2), ("float k", 2)],
    ids=["whole", "channels", "scalar"],
)
def test_only_operands_of_another_order_keep_a_region_out(given: str, expected: int) -> None:
    """A scalar has no order, and channels alone are the same in every order."""
    text = f"""operand (float[1,2,4,5] x, {given}) => (float[1,2,4,5] y)
    <float[2,2,1,1] w = {{1.0, 2.0, 3.0, 4.0}}, int64[1] last = {{4}}> {{
        a = Conv(x, w)
        b = Unsqueeze(a, last)
        c = Add(b, k)
        d = Squeeze(c, last)
        y = Conv(d, w)
    }}"""
    assert left_by(text, "preset-plus") == [expected]
