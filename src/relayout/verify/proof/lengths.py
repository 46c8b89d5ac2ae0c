"""Lengths of axes: whole numbers, or polynomials in the lengths that only a run tells.

Two lengths are equal only if they are the same polynomial: no sample values are ever compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import total_ordering
from math import gcd

Monomial = tuple[str, ...]
"""The symbols whose product it is, sorted."""


@total_ordering
@dataclass(frozen=True, eq=False)
class Polynomial:
    """A sum of monomials with whole coefficients; never constant."""

    terms: tuple[tuple[Monomial, int], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.terms))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Polynomial):
            return False
        return self is other or (hash(self) == hash(other) and self.terms == other.terms)

    def __hash__(self) -> int:
        number: int = self._hash  # type: ignore[attr-defined]
        return number

    def __lt__(self, other: Length) -> bool:
        """An order to sort by, which says nothing about values."""
        return isinstance(other, Polynomial) and self.terms < other.terms

    def __str__(self) -> str:
        return " + ".join(_monomial_text(*term) for term in self.terms)


Length = int | Polynomial


# The names of symbols that may be below 0 begin with this.
ANY = "?"
# And this is in the names of lengths of tensors of which only the origin is known.
OPAQUE = "#"
# Twice, it may name another length when a model is read again: nothing is kept about such.
UNSTABLE = "##"


_MINIMUM = re.compile(r"min\((\d+), (.*)\)")


def symbol(name: str) -> Length:
    return Polynomial((((name,), 1),))


def plus(left: Length, right: Length) -> Length:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    terms = dict(_terms(left))
    for monomial, count in _terms(right):
        terms[monomial] = terms.get(monomial, 0) + count
    return _length(terms)


def minus(left: Length, right: Length) -> Length:
    return plus(left, times(-1, right))


def times(left: Length, right: Length) -> Length:
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    terms: dict[Monomial, int] = {}
    for one, count in _terms(left):
        for other, factor in _terms(right):
            monomial = tuple(sorted(one + other))
            terms[monomial] = terms.get(monomial, 0) + count * factor
    return _length(terms)


def product(lengths: list[Length] | tuple[Length, ...]) -> Length:
    result: Length = 1
    for length in lengths:
        result = times(result, length)
    return result


def quotient(whole: Length, part: Length) -> Length | None:
    """The length that gives `whole` when multiplied by `part`, if it is known to exist."""
    if part == 0:
        return None
    if isinstance(whole, int) and isinstance(part, int):
        return whole // part if whole % part == 0 else None
    if whole == part:
        return 1
    rest, result = dict(_terms(whole)), dict[Monomial, int]()
    lead, factor = _leading(dict(_terms(part)))
    while rest:
        monomial, count = _leading(rest)
        shared = _without(monomial, lead)
        if shared is None or count % factor:
            return None
        result[shared] = count // factor
        rest = dict(_terms(minus(_length(rest), times(_length({shared: count // factor}), part))))
    return _length(result)


def floor(whole: Length, part: int) -> Length:
    """`whole` divided by `part`, rounded down."""
    exact = quotient(whole, part)
    if exact is not None:
        return exact
    if isinstance(whole, int):
        return whole // part
    multiple = {monomial: count // part * part for monomial, count in whole.terms}
    rest = minus(whole, _length(dict(multiple)))
    outer = quotient(_length(multiple), part)
    assert outer is not None
    return plus(outer, symbol(f"floor(({rest})/{part})"))


def nonnegative(length: Length) -> bool:
    """Whether it is known to be at least 0: lengths are, and so are their sums and products."""
    return _without_sign(length) or _without_sign(_above_one(length))


def _without_sign(length: Length) -> bool:
    return all(
        count >= 0 and not any(name.startswith(ANY) for name in monomial)
        for monomial, count in _terms(length)
    )


def _above_one(length: Length) -> Length:
    """The length in terms of how much longer than 1 the axes of inputs are."""
    names = {name for monomial, _ in _terms(length) for name in monomial}
    return replaced(length, {n: plus(1, symbol(n)) for n in names if _is_of_input(n)})


def _is_of_input(name: str) -> bool:
    """Whether it is how a model or `graphs.py` calls the length of an input's axis, at least 1."""
    return name.isidentifier() or name.startswith(("'", '"', "input "))


def positive(length: Length) -> bool:
    """Whether it is known to be at least 1."""
    return nonnegative(length) and dict(_terms(length)).get((), 0) > 0


def larger(left: Length, right: Length) -> Length:
    if nonnegative(minus(left, right)):
        return left
    if nonnegative(minus(right, left)):
        return right
    name = f"max({min(str(left), str(right))}, {max(str(left), str(right))})"
    return symbol(name if nonnegative(left) or nonnegative(right) else ANY + name)


def smaller(left: Length, right: Length) -> Length:
    if nonnegative(minus(right, left)):
        return left
    if nonnegative(minus(left, right)):
        return right
    number, other = (left, right) if isinstance(left, int) else (right, left)
    if not isinstance(number, int):
        names = sorted((str(left), str(right)))
        sign = "" if nonnegative(left) and nonnegative(right) else ANY
        return symbol(f"{sign}min({names[0]}, {names[1]})")
    known = _bounded(other)
    if known is not None:
        return symbol(f"min({min(number, known[0])}, {known[1]})")
    return symbol(f"{'' if nonnegative(other) and number >= 0 else ANY}min({number}, {other})")


def _bounded(length: Length) -> tuple[int, str] | None:
    """The number and the name of the length of which it is the smaller one."""
    found = _MINIMUM.fullmatch(str(length)) if is_plain(length) else None
    return None if found is None else (int(found[1]), found[2])


def fits_only_as(one: Length, other: Length) -> bool:
    """Whether one length, where both are broadcast against each other, can only be the other.

    It is then the other one or a number above 1, whichever is smaller: where it is 1 so is the
    other, and where it is the number the lengths do not fit unless the other is the same.
    """
    bounded = _bounded(one)
    return bounded is not None and bounded[0] > 1 and bounded[1] == str(other)


def is_plain(length: Length) -> bool:
    """Whether it is a number or one symbol, and not that of a tensor of which nothing is known."""
    if isinstance(length, int):
        return True
    (monomial, count), *more = length.terms
    return not more and count == 1 and len(monomial) == 1 and OPAQUE not in monomial[0]


def is_stable(length: Length) -> bool:
    """Whether its symbols mean the same when a model is read again."""
    return not any(UNSTABLE in name for monomial, _ in _terms(length) for name in monomial)


def replaced(length: Length, known: Mapping[str, Length]) -> Length:
    """The length with symbols replaced by what they are known to be."""
    if isinstance(length, int) or not known:
        return length
    if not any(name in known for monomial, _ in length.terms for name in monomial):
        return length
    result: Length = 0
    for monomial, count in length.terms:
        result = plus(result, product([count, *(known.get(n, symbol(n)) for n in monomial)]))
    return result


def solved(left: Length, right: Length) -> tuple[str, Length] | None:
    """A symbol and what it must be if both lengths, which are at least 1, are equal."""
    terms = dict(_terms(minus(left, right)))
    terms = _without_common(terms)
    counts = Counter(name for monomial in terms for name in monomial)
    alone = [m[0] for m, count in terms.items() if len(m) == 1 and abs(count) == 1]
    found = [name for name in alone if counts[name] == 1]
    if not found:
        return None
    chosen = max(found, key=lambda name: (len(name), name))
    count = terms.pop((chosen,))
    return chosen, times(-count, _length(terms))


def primitive(length: Length) -> Length:
    """The length without factors that all of its terms have; where one is 0 so is the other."""
    return _length(_without_common(dict(_terms(length))))


def _without_common(terms: dict[Monomial, int]) -> dict[Monomial, int]:
    """The terms without symbols that are factors of all of them."""
    monomials = list(terms)
    if not monomials:
        return terms
    common = Counter(monomials[0])
    for monomial in monomials[1:]:
        common &= Counter(monomial)
    divisor = gcd(*terms.values())
    shared = tuple(common.elements())
    return {(_without(m, shared) or ()): count // divisor for m, count in terms.items()}


def _terms(length: Length) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(length, int):
        return (((), length),) if length else ()
    return length.terms


def _length(terms: dict[Monomial, int]) -> Length:
    left = {monomial: count for monomial, count in terms.items() if count}
    if not left:
        return 0
    if len(left) == 1 and () in left:
        return left[()]
    return Polynomial(tuple(sorted(left.items())))


def _leading(terms: dict[Monomial, int]) -> tuple[Monomial, int]:
    return max(terms.items(), key=lambda term: (len(term[0]), term[0]))


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    left = list(monomial)
    for name in part:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)


def _monomial_text(monomial: Monomial, count: int) -> str:
    if not monomial:
        return str(count)
    return "*".join(([] if count == 1 else [str(count)]) + list(monomial))
