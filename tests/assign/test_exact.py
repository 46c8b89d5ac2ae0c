from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from time import monotonic, sleep

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relayout.assign.certificate import verify
from relayout.assign.component import Component, Decided, Persistent
from relayout.assign.encoding import certificate
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant, as_given, evaluate
from relayout.assign.strategies.branch import solve_by_branching
from relayout.assign.strategies.components import split
from relayout.assign.strategies.exact import decide, solve
from tests.assign.random_problems import CHOICES, SHAPES, Shape, brute_force, random_problem, size


def check(problem: LayoutProblem) -> None:
    """The answer is the minimal cost, is reported as such, and its proof holds."""
    assignment = solve(problem)
    assert evaluate(problem, assignment.choice) == assignment.cost == brute_force(problem)
    assert assignment.optimal, str(assignment)
    assert verify(certificate(assignment), problem) == []


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_answer_is_what_brute_force_finds(shape: Shape) -> None:
    random = Random(2)
    checked = 0
    while checked < 1000:
        problem = random_problem(random, shape)
        if size(problem) <= CHOICES:
            check(problem)
            checked += 1


@settings(
    max_examples=300,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(st.randoms(use_true_random=False), st.sampled_from(list(SHAPES.values())))
def test_the_answer_is_what_brute_force_finds_where_hypothesis_looks(
    random: Random, shape: Shape
) -> None:
    problem = random_problem(random, shape)
    assume(size(problem) <= CHOICES)
    check(problem)


def twisted(copies: int) -> LayoutProblem:
    """`x + transpose(x)`, several times in a row: no gauge gives two labels to it."""
    values = tuple(Value(f"v{i}", ("ab", "ba"), 1) for i in range(copies + 1))
    source = Operator("x", (), (0,), tuple(Variant((), (order,)) for order in (0, 1)))
    adds = [
        Operator(f"add{i}", (i, i), (i + 1,), tuple(Variant((o, 1 - o), (o,), o) for o in (0, 1)))
        for i in range(copies)
    ]
    return LayoutProblem((source, *adds), values)


def test_a_twist_costs_a_copy_wherever_it_is() -> None:
    assignment = solve(twisted(5))
    assert (assignment.cost, assignment.optimal) == (5, True)


def disputed(readers: int) -> LayoutProblem:
    """A tensor in any of three orders, and readers that want it in one each."""
    source = Operator("x", (), (0,), tuple(Variant((), (order,)) for order in range(3)))
    sinks = [Operator(f"y{i}", (0,), (), (Variant((i % 3,), ()),)) for i in range(readers)]
    return LayoutProblem((source, *sinks), (Value("v", ("abc", "bca", "cab"), 1),))


def test_a_component_that_was_interrupted_is_decided_anew_in_the_time_left() -> None:
    components = [each for count in (3, 4) for each in split(disputed(count))]
    asked: list[int] = []

    def interrupted_once(component: Component, deadline: float) -> Decided:
        asked.append(len(component.members))
        if len(asked) == 1:
            sleep(max(0.0, deadline - monotonic()))
        return solve_by_branching(component, deadline)

    decided = decide(components, monotonic() + 0.4, interrupted_once)
    assert asked == [4, 5, 4]
    assert sum(each.cost for each in decided) == sum(each.bound for each in decided) == 4


def test_a_model_that_is_best_as_given_stays_as_given() -> None:
    values = tuple(Value(f"v{i}", ("nchw", "nhwc"), 1) for i in range(4))
    source = Operator("x", (), (0,), (Variant((), (0,)),))
    relus = [
        Operator(f"relu{i}", (i,), (i + 1,), tuple(Variant((o,), (o,)) for o in (0, 1)))
        for i in range(3)
    ]
    sink = Operator("y", (3,), (), (Variant((1,), ()),))
    assignment = solve(LayoutProblem((source, *relus, sink), values))
    assert assignment.choice == (0, 0, 0, 0, 0)
    assert assignment.cost == 1


def test_a_problem_without_operators_costs_nothing() -> None:
    assignment = solve(LayoutProblem((), ()))
    assert (assignment.choice, assignment.cost, assignment.optimal) == ((), 0, True)


def test_without_time_the_answer_is_at_most_the_given_cost_and_its_bound_holds() -> None:
    random = Random(5)
    shape = Shape(operators=60, orders=4, variants=4, labels=True)
    open_ = 0
    for _ in range(20):
        problem = random_problem(random, shape)
        hurried = solve(problem, budget_seconds=0.0)
        given_cost = evaluate(problem, as_given(problem))
        assert given_cost is not None
        assert hurried.bound <= solve(problem).cost <= hurried.cost <= given_cost
        assert verify(certificate(hurried), problem) == []
        assert hurried.optimal == (not hurried.notes)
        open_ += not hurried.optimal
    assert open_


def test_a_proof_is_exact_to_the_last_digit_where_floating_point_is_not() -> None:
    shape = Shape(operators=200, orders=3, variants=3, labels=True, paired=0.0, largest=2**90)
    kinds: set[str] = set()
    for seed in range(10):
        problem = random_problem(Random(seed), shape)
        assignment = solve(problem)
        assert assignment.optimal, str(assignment)
        assert verify(certificate(assignment), problem) == []
        kinds.update(_kinds(assignment.parts))
    assert "dual" in kinds


def _kinds(parts: Sequence[Decided]) -> Iterator[str]:
    for part in parts:
        yield part.kind
        if isinstance(part.proof, Persistent):
            yield from _kinds(part.proof.parts)


def test_the_same_problem_has_the_same_answer_twice() -> None:
    problem = random_problem(Random(11), Shape(operators=80, labels=True))
    assert solve(problem) == solve(problem)
