"""Lengths against whole numbers: what holds of them holds of every value of their symbols."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from relayout.verify.proof.lengths import (
    Length,
    floor,
    minus,
    nonnegative,
    plus,
    positive,
    quotient,
    replaced,
    solved,
    symbol,
    times,
)

NAMES = ("a", "b", "c")
Values = dict[str, int]

values = st.fixed_dictionaries({name: st.integers(1, 9) for name in NAMES})
monomials = st.lists(st.sampled_from(NAMES), max_size=2)


@st.composite
def lengths(draw: st.DrawFn, low: int = -4) -> Length:
    result: Length = draw(st.integers(low, 6))
    for names in draw(st.lists(monomials, max_size=3)):
        term: Length = draw(st.integers(low, 4))
        for name in names:
            term = times(term, symbol(name))
        result = plus(result, term)
    return result


def at(length: Length, known: Values) -> int:
    """The number that a length is at these values of its symbols."""
    whole = replaced(length, {**known})
    assert isinstance(whole, int)
    return whole


@given(lengths(), lengths(), values)
def test_sums_and_products(one: Length, other: Length, known: Values) -> None:
    assert at(plus(one, other), known) == at(one, known) + at(other, known)
    assert at(minus(one, other), known) == at(one, known) - at(other, known)
    assert at(times(one, other), known) == at(one, known) * at(other, known)


@given(lengths(), lengths(), st.just(0) | lengths(), values)
def test_a_quotient_is_one(factor: Length, part: Length, more: Length, known: Values) -> None:
    whole = plus(times(factor, part), more)
    found = quotient(whole, part)
    assert found is None or at(whole, known) == at(found, known) * at(part, known)


@given(lengths(), lengths())
def test_every_product_has_its_quotients(one: Length, other: Length) -> None:
    assume(one != 0)
    assert quotient(times(one, other), one) == other


@given(lengths(low=0), st.integers(1, 6), values)
def test_floor_rounds_down(whole: Length, part: int, known: Values) -> None:
    found = floor(whole, part)
    names = {name for monomial, _ in getattr(found, "terms", ()) for name in monomial}
    made = {name: _made(name, known) for name in names - set(NAMES)}
    assert at(found, {**known, **made}) == at(whole, known) // part


def _made(name: str, known: Values) -> int:
    """What a symbol such as floor((a + 2*b)/3) stands for."""
    match = re.fullmatch(r"floor\(\((.*)\)/(\d+)\)", name)
    assert match is not None
    whole = sum(_monomial(text, known) for text in match[1].split(" + "))
    return whole // int(match[2])


def _monomial(text: str, known: Values) -> int:
    result = 1
    for factor in text.split("*"):
        result *= known[factor] if factor in known else int(factor)
    return result


@given(lengths(), lengths(), values)
def test_what_is_solved_must_hold(one: Length, other: Length, known: Values) -> None:
    equal = plus(other, at(one, known) - at(other, known))
    found = solved(one, equal)
    assert found is None or known[found[0]] == at(found[1], known)


@given(lengths(), values)
def test_signs(length: Length, known: Values) -> None:
    assert not nonnegative(length) or at(length, known) >= 0
    assert not positive(length) or at(length, known) >= 1


def test_what_may_be_below_0_is_not_taken_for_a_length() -> None:
    assert not nonnegative(symbol("?div(a, b)"))


def test_a_solution_is_found() -> None:
    a, b = symbol("a"), symbol("b")
    assert solved(times(a, b), times(a, 3)) == ("b", 3)
    assert solved(times(2, a), 7) is None
