"""The topological greedy method: the transitions and rules of the document that proposes it."""

from __future__ import annotations

import pytest

from relayout.assign.strategies.registry import EXACT
from tests.assign.writing import left_by, written
from tests.rewrite.rewriting import parse

IMAGE = "float[1,2,4,5]"
WEIGHT = "float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}"

TRANSPOSED = """b = Transpose<perm=[0,2,3,1]>(a)
    c = Relu(b)
    d = Transpose<perm=[0,3,1,2]>(c)"""


def graph(body: str, output: str = IMAGE, more: str = "") -> str:
    inputs = ", ".join(filter(None, (f"{IMAGE} x", more)))
    constants = f"{WEIGHT}, int64[2] flat = {{1, 40}}, int64[4] image = {{1, 2, 4, 5}}"
    return f"network ({inputs}) => ({output} y) <{constants}> {{ {body} }}"


@pytest.mark.parametrize(
    ("body", "output", "expected"),
    [
        ("a = Conv(x, w) y = Conv(a, w)", IMAGE, 2),
        ("a = Conv(x, w) y = Reshape(a, flat)", "float[1,40]", 2),
        ("a = Reshape(x, flat) b = Reshape(a, image) y = Relu(b)", IMAGE, 0),
        ("a = Reshape(x, flat) y = Relu(a)", "float[1,40]", 0),
    ],
    ids=["CNN to CNN", "CNN to Tensor", "Tensor to CNN", "Tensor to Tensor"],
)
def test_four_transitions(body: str, output: str, expected: int) -> None:
    assert left_by(graph(body, output), "greedy") == [expected]


@pytest.mark.parametrize(
    ("body", "output", "expected"),
    [
        ("y = Conv(x, w)", IMAGE, 2),
        ("a = Conv(x, w) b = Reshape(a, flat) y = Relu(b)", "float[1,40]", 2),
        ("a = Conv(x, w) y = Add(a, x)", IMAGE, 2),
    ],
    ids=["a demand", "back to what was recorded", "inputs that disagree"],
)
def test_three_reasons_to_insert(body: str, output: str, expected: int) -> None:
    assert left_by(graph(body, output), "greedy") == [expected]


def test_a_path_without_a_demand_gets_none() -> None:
    text = graph("a = Relu(x) b = Sigmoid(a) y = Add(a, b)")
    assert written(parse(text), "greedy").kinds == ["Relu", "Sigmoid", "Add"]


def test_the_counter_example_of_regions_needs_two() -> None:
    body = "a = Conv(x, w) b = Reshape(a, flat) c = Reshape(z, flat) y = Add(b, c)"
    assert left_by(graph(body, "float[1,40]", f"{IMAGE} z"), "greedy") == [2]


@pytest.mark.parametrize(
    ("body", "more", "expected"),
    [
        (f"a = Conv(x, w) {TRANSPOSED} y = Conv(d, w)", "", 2),
        ("a = Conv(x, w) b = Softmax<axis=1>(a) y = Conv(b, w)", "", 2),
        ("a = Conv(x, w) b = Conv(x, w) c = Mul(a, b) y = Conv(c, w)", "", 2),
        ("a = Conv(x, w) b = Mul(a, s) y = Conv(b, w)", "float s", 2),
        ("a = Conv(x, w) b = Mul(a, s) y = Conv(b, w)", "float[2,1,1] s", 2),
        ("a = Conv(x, w) y = Identity(a)", "", 2),
    ],
    ids=["a Transpose", "an axis", "two vectors", "a scalar", "fewer axes", "an output"],
)
def test_what_the_document_leaves_open(body: str, more: str, expected: int) -> None:
    assert left_by(graph(body, more=more), "greedy") == [expected]


def test_one_conversion_serves_all_readers() -> None:
    body = "a = Conv(x, w) b = Reshape(a, flat) c = Reshape(a, flat) y = Add(b, c)"
    assert left_by(graph(body, "float[1,40]"), "greedy") == [2]


def test_forwards_and_without_a_view_of_what_follows_it_is_not_always_least() -> None:
    """The sum is wanted channels last by what follows it, which the walk has not seen yet."""
    text = graph("a = Conv(x, w) b = Add(a, z) y = Conv(b, w)", more=f"{IMAGE} z")
    assert left_by(text, "greedy", EXACT.name) == [4, 3]
