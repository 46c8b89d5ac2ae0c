"""The strategies on random problems, and on the graphs with which each was first described."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import pytest

from relayout.api import optimize
from relayout.assign.assignment import Assignment
from relayout.assign.problem import (
    LayoutProblem,
    Operator,
    Value,
    Variant,
    as_given,
    copies,
    evaluate,
)
from relayout.assign.strategies.naive import isolating_copies
from relayout.assign.strategies.registry import EXACT, STRATEGIES, Strategy, strategy_of
from relayout.assign.strategies.transmit import reverse_colours
from relayout.cli.demo_model import network
from relayout.errors import RelayoutError
from relayout.layout.layout import LayoutClass
from tests.assign.random_problems import SHAPES, Shape, random_problem

NCHW, NHWC = 0, 1
SIMPLIFYING = [name for name in STRATEGIES if name != "naive"]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_choice_is_valid_and_none_beats_the_exact_one(shape: Shape) -> None:
    random = Random(7)
    for _ in range(300):
        problem = random_problem(random, shape)
        costs = {name: _checked_cost(problem, name) for name in STRATEGIES}
        assert costs[EXACT.name] == min(costs.values())
        assert costs["preset-cost"] <= costs["preset"]


def _checked_cost(problem: LayoutProblem, name: str) -> int:
    assignment = strategy_of(name)(problem)
    assert evaluate(problem, assignment.choice) == assignment.cost
    assert strategy_of(name)(problem) == assignment, "another answer the second time"
    return assignment.cost


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != EXACT.name])
def test_only_the_exact_strategy_claims_a_bound(name: str) -> None:
    problem = random_problem(Random(3), Shape(operators=40, labels=True))
    assignment = strategy_of(name)(problem)
    assert (assignment.bound, assignment.parts) == (0, ())


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RelayoutError, match=r"'fastest'.*naive.*exact"):
        strategy_of("fastest")


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_problem_without_operators_costs_nothing(name: str) -> None:
    assignment = strategy_of(name)(LayoutProblem((), ()))
    assert (assignment.choice, assignment.cost) == ((), 0)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_long_chain_needs_no_deep_stack(name: str) -> None:
    problem = chain("relu" for _ in range(5000))
    assert strategy_of(name)(problem).choice == as_given(problem)


class Graph:
    """Writes a problem down operator by operator, values in NCHW or NHWC."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.operators: list[Operator] = []

    def add(self, name: str, operands: Sequence[int], *variants: Variant, makes: int = 1) -> int:
        """An operator; gives the number of its first result."""
        first = len(self.values)
        results = tuple(range(first, first + makes))
        self.values += [Value(f"{name}{number}", ("nchw", "nhwc"), 10) for number in results]
        self.operators.append(Operator(name, tuple(operands), results, variants))
        return first

    def given(self) -> int:
        return self.add("input", (), Variant((), (NCHW,)))

    def free(self) -> int:
        """A tensor that may come in any order."""
        return self.add("free input", (), Variant((), (NCHW,)), Variant((), (NHWC,)))

    def output(self, value: int) -> None:
        self.add("output", (value,), Variant((NCHW,), ()), makes=0)

    def conv(self, value: int) -> int:
        """Given in NCHW, for which there is no good kernel."""
        return self.add(
            "conv", (value,), Variant((NCHW,), (NCHW,), 99), Variant((NHWC,), (NHWC,), 0)
        )

    def relu(self, *values: int) -> int:
        """Runs in either order."""
        count = len(values)
        here = Variant((NCHW,) * count, (NCHW,))
        return self.add("relu", values, here, Variant((NHWC,) * count, (NHWC,)))

    def tensor(self, value: int) -> int:
        """Has the same meaning in NHWC, but its result is not a feature."""
        made = self.relu(value)
        self.values[made] = replace(self.values[made], layout_class=LayoutClass.NTENSOR)
        return made

    def reshape(self, value: int) -> int:
        """Mixes its axes, so it has to see them as given."""
        return self.add("reshape", (value,), Variant((NCHW,), (NCHW,)))

    def problem(self) -> LayoutProblem:
        return LayoutProblem(tuple(self.operators), tuple(self.values))


def chain(kinds: Iterable[str]) -> LayoutProblem:
    """An input, one operator after the other, and an output."""
    graph = Graph()
    value = graph.given()
    for kind in kinds:
        value = getattr(graph, kind)(value)
    graph.output(value)
    return graph.problem()


def copies_of(problem: LayoutProblem, name: str) -> int:
    return len(copies(problem, strategy_of(name)(problem).choice))


@pytest.mark.parametrize(("name", "expected"), [("naive", 4), *((n, 2) for n in SIMPLIFYING)])
def test_two_convolutions_with_activations(name: str, expected: int) -> None:
    assert copies_of(chain(("conv", "relu", "conv", "relu")), name) == expected


def test_two_nodes_in_a_row_are_isolated_by_four_copies_and_a_region_has_two() -> None:
    problem = chain(("conv", "conv"))
    assert isolating_copies(problem, strategy_of("naive")(problem).choice) == 4
    assert copies_of(problem, "preset") == 2


def test_a_pure_convolutional_network_has_copies_at_its_ends_only() -> None:
    problem = chain(("conv", "relu") * 20)
    for name in SIMPLIFYING:
        assert copies_of(problem, name) == 2, name


@pytest.mark.parametrize("between", [["tensor"], ["tensor", "tensor"], ["relu", "tensor", "relu"]])
def test_preset_plus_takes_in_what_is_between_two_regions(between: list[str]) -> None:
    problem = chain(("conv", *between, "conv"))
    assert copies_of(problem, "preset") == 4
    assert copies_of(problem, "preset-plus") == 2


def test_preset_plus_takes_in_nothing_that_mixes_axes() -> None:
    problem = chain(("conv", "reshape", "conv"))
    assert copies_of(problem, "preset") == copies_of(problem, "preset-plus") == 4


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_sum_after_reshapes_sees_both_sides_as_given(name: str) -> None:
    graph = Graph()
    left = graph.reshape(graph.conv(graph.given()))
    right = graph.reshape(graph.given())
    graph.output(graph.add("add", (left, right), Variant((NCHW, NCHW), (NCHW,))))
    assert copies_of(graph.problem(), name) == 2


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_region_without_a_demand_stays_as_given(name: str) -> None:
    problem = chain(("relu", "tensor", "relu"))
    assert strategy_of(name)(problem).choice == as_given(problem)


@pytest.mark.parametrize("name", STRATEGIES)
def test_one_copy_serves_all_readers(name: str) -> None:
    graph = Graph()
    value = graph.given()
    for _ in range(3):
        graph.conv(value)
    assert copies_of(graph.problem(), name) == 1


def test_automatic_nhwc_follows_any_operand_a_majority_counts_and_greedy_weighs() -> None:
    graph = Graph()
    large = graph.conv(graph.given())
    small = [graph.given(), graph.given()]
    joined = graph.relu(large, *small)
    graph.conv(joined)
    add = len(graph.operators) - 2
    names = ("auto-nhwc", "auto-nhwc-majority", "greedy")
    for price, expected in ((10, [NHWC, NCHW, NCHW]), (50, [NHWC, NCHW, NHWC])):
        graph.values[large] = Value("large", ("nchw", "nhwc"), price)
        problem = graph.problem()
        assert [strategy_of(name)(problem).choice[add] for name in names] == expected


def test_transmit_colours_inputs_from_the_known_operator_and_converts_once_at_the_join() -> None:
    """Inputs A and B, C known, D after A, E after C, and F where D and E meet."""
    graph = Graph()
    a, b = graph.free(), graph.free()
    known = (Variant((NCHW, NCHW), (NCHW,), 99), Variant((NHWC, NCHW), (NCHW,), 0))
    c = graph.add("c", (a, b), *known)
    d, e = graph.relu(a), graph.relu(c)
    f = graph.relu(d, e)
    problem = graph.problem()
    assert reverse_colours(problem) == {a: NHWC, b: NCHW, c: NCHW}
    choice = strategy_of("transmit")(problem).choice
    stored = _stored(problem, choice)
    assert [stored[value] for value in (a, b, c, d, e)] == [NHWC, NCHW, NCHW, NHWC, NCHW]
    assert [value for value, *_ in copies(problem, choice)] == [d if stored[f] == NCHW else e]


def test_transmit_gives_a_path_without_a_known_operator_its_default() -> None:
    graph = Graph()
    met, alone = graph.free(), graph.free()
    graph.conv(graph.relu(met))
    last = graph.relu(graph.relu(alone))
    problem = graph.problem()
    colours = reverse_colours(problem)
    assert (colours[met], alone in colours, last in colours) == (NHWC, False, False)
    stored = _stored(problem, strategy_of("transmit")(problem).choice)
    assert (stored[met], stored[alone], stored[last]) == (NHWC, NCHW, NCHW)


def test_transmit_does_not_look_back_through_an_operator_that_takes_any_order() -> None:
    """conv, reshape, c, g, reshape, gemm: a reshape relabels, so nothing has to be moved."""
    graph = Graph()
    relabels = (Variant((NHWC,), (NCHW,)), Variant((NCHW,), (NCHW,)))
    conv = graph.conv(graph.free())
    first = graph.add("reshape", (conv,), *relabels)
    c = graph.relu(first)
    g = graph.relu(c)
    second = graph.add("reshape", (g,), *relabels)
    graph.add("gemm", (second,), Variant((NCHW,), (NCHW,)))
    problem = graph.problem()
    colours = reverse_colours(problem)
    assert (colours[conv], colours[second]) == (NHWC, NCHW)
    assert not {first, c, g} & colours.keys()
    assert copies_of(problem, "transmit") == 0


def _stored(problem: LayoutProblem, choice: Sequence[int]) -> dict[int, int]:
    return {
        value: order
        for operator, chosen in zip(problem.operators, choice, strict=True)
        for value, order in zip(operator.results, operator.variants[chosen].writes, strict=True)
    }


@pytest.mark.parametrize("by_kinds", [True, False])
def test_kinds_of_tensors_are_stated_for_strategies_that_look_at_them(by_kinds: bool) -> None:
    seen: list[LayoutProblem] = []

    def search(problem: LayoutProblem, seconds: float) -> Assignment:
        seen.append(problem)
        return EXACT(problem, seconds)

    optimize(network(), strategy=Strategy("watching", search, by_kinds=by_kinds), verify=False)
    classes = {value.layout_class for problem in seen for value in problem.values}
    assert (LayoutClass.FEATURE in classes) == by_kinds
    assert (None in classes) != by_kinds
