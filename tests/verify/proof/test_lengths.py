"""Lengths against whole numbers: what holds of them holds of every value of their symbols."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from relayout.verify.proof.lengths import (
    Length,
    fits_only_as,
    floor,
    larger,
    minus,
    nonnegative,
    plus,
    positive,
    quotient,
    replaced,
    smaller,
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


def _value(length: Length, known: Values) -> int:
    """The same for a length that may be a minimum or a maximum."""
    return int(eval(str(length).replace("?", ""), {"min": min, "max": max, **known}))


@given(lengths(), lengths(), values)
def test_the_larger_and_the_smaller(one: Length, other: Length, known: Values) -> None:
    both = at(one, known), at(other, known)
    for length, number in ((larger(one, other), max(both)), (smaller(one, other), min(both))):
        assert _value(length, known) == number
        assert not nonnegative(length) or number >= 0


@given(st.integers(-2, 9), st.integers(-2, 9), lengths(), values)
def test_the_smallest_of_three(one: int, other: int, length: Length, known: Values) -> None:
    least = smaller(one, smaller(other, length))
    assert _value(least, known) == min(one, other, at(length, known))


@given(st.integers(-2, 9), lengths(), st.sampled_from(NAMES).map(symbol), values)
def test_what_fits_only_as_another_is_it(
    most: int, length: Length, axis: Length, known: Values
) -> None:
    """Wherever both are broadcast against each other: they are equal or one of them is 1."""
    one = smaller(most, length)
    numbers = _value(one, known), at(axis, known)
    if fits_only_as(one, axis) and (1 in numbers or len(set(numbers)) == 1):
        assert numbers[0] == numbers[1]


def test_a_bounded_length_is_found_to_be_the_other() -> None:
    a, b = symbol("a"), symbol("b")
    assert fits_only_as(smaller(5, a), a)
    assert not fits_only_as(smaller(5, a), b)
    assert not fits_only_as(smaller(1, symbol("?a")), symbol("?a"))
    assert not fits_only_as(a, a)


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


def test_the_larger_is_one_of_two_where_that_is_known() -> None:
    a, more = symbol("a"), plus(symbol("a"), 1)
    assert larger(a, more) == larger(more, a) == more
    assert smaller(a, more) == smaller(more, a) == a


def test_a_solution_is_found() -> None:
    a, b = symbol("a"), symbol("b")
    assert solved(times(a, b), times(a, 3)) == ("b", 3)
    assert solved(times(2, a), 7) is None
    assert solved(plus(times(2, a), 3), plus(a, b)) == ("b", plus(a, 3))
