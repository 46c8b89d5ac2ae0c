from __future__ import annotations

import pytest

from relayout.assign.problem import (
    LayoutProblem,
    Operator,
    Value,
    Variant,
    as_given,
    copies,
    evaluate,
)

NCHW, NHWC = 0, 1


def value(name: str, price: int | tuple[tuple[int, ...], ...] = 1) -> Value:
    return Value(name, ("nchw", "nhwc"), price)


def source(name: str, result: int, order: int) -> Operator:
    return Operator(name, (), (result,), (Variant((), (order,)),))


def sink(name: str, operand: int, order: int) -> Operator:
    return Operator(name, (operand,), (), (Variant((order,), ()),))


def unary(name: str, operand: int, result: int) -> Operator:
    variants = tuple(Variant((order,), (order,)) for order in (NCHW, NHWC))
    return Operator(name, (operand,), (result,), variants)


def test_readers_that_want_the_same_order_share_one_copy() -> None:
    operators = (source("x", 0, NCHW), *(sink(f"y{i}", 0, NHWC) for i in range(3)))
    problem = LayoutProblem(operators, (value("v", 7),))
    assert evaluate(problem, as_given(problem)) == 7
    assert copies(problem, as_given(problem)) == [(0, NCHW, NHWC)]


def test_the_price_of_a_copy_depends_on_its_direction() -> None:
    prices = ((0, 3), (8, 0))
    there = LayoutProblem((source("x", 0, NCHW), sink("y", 0, NHWC)), (value("v", prices),))
    back = LayoutProblem((source("x", 0, NHWC), sink("y", 0, NCHW)), (value("v", prices),))
    assert (evaluate(there, (0, 0)), evaluate(back, (0, 0))) == (3, 8)


def test_a_choice_that_names_no_variant_has_no_cost() -> None:
    problem = LayoutProblem((source("x", 0, NCHW), unary("relu", 0, 1)), (value("v"), value("w")))
    assert evaluate(problem, (0, 1)) == 1
    assert evaluate(problem, (0, 2)) is None
    assert evaluate(problem, (0, -1)) is None
    assert evaluate(problem, (0,)) is None


def test_producers_and_readers_are_derived() -> None:
    add = Operator("add", (0, 0), (1,), (Variant((0, 0), (0,)),))
    problem = LayoutProblem((source("x", 0, NCHW), add, sink("y", 1, 0)), (value("v"), value("w")))
    assert problem.producers == (0, 1)
    assert problem.readers == ((1,), (2,))


def test_a_problem_prints_its_orders_by_name_and_stays_short() -> None:
    chain = [unary(f"relu{i}", i, i + 1) for i in range(100)]
    values = tuple(value(f"v{i}") for i in range(101))
    text = str(LayoutProblem((source("x", 0, NCHW), *chain), values))
    assert "relu0: (v0:nchw) -> (v1:nchw) at 0 | (v0:nhwc) -> (v1:nhwc) at 0" in text
    assert text.endswith("... and 61 more")


@pytest.mark.parametrize(
    ("operators", "values", "reason"),
    [
        ((), (value("v"),), "made by no operator"),
        ((source("a", 0, 0), source("b", 0, 0)), (value("v"),), "made twice"),
        ((source("a", 0, 2),), (value("v"),), "unknown order"),
        ((source("a", 1, 0),), (value("v"),), "does not exist"),
        ((unary("relu", 0, 0),), (value("v"),), "its own result"),
        ((Operator("a", (), (0,), ()),), (value("v"),), "no variant"),
        ((Operator("a", (), (0,), (Variant((0,), (0,)),)),), (value("v"),), "another arity"),
        ((Operator("a", (), (0,), (Variant((), (0,), -1),)),), (value("v"),), "negative price"),
        ((source("a", 0, 0),), (value("v", -1),), "negative copy price"),
        ((source("a", 0, 0),), (value("v", ((0, 1),)),), "2 rows of 2"),
        ((source("a", 0, 0),), (Value("v", ()),), "no order"),
    ],
)
def test_a_malformed_problem_is_refused(
    operators: tuple[Operator, ...], values: tuple[Value, ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        LayoutProblem(operators, values)
