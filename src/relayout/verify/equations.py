"""What equations between lengths make of the open ones.

Lengths are polynomials in the open ones. Where an equation gives one of them by the others, such as
a total of past and new, it is put in its place; what is left, such as a product that must be the
number of elements of a fixed shape, has a few solutions in whole numbers, which are searched for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, isqrt, log

from relayout.verify.proof.lengths import (
    Length,
    Monomial,
    minus,
    primitive,
    product,
    replaced,
    symbol,
)

MOST_SOLUTIONS = 512
MOST_STEPS = 5_000
MOST_ELEMENTS = 1 << 32
"""Counts above this are not taken apart: nothing of that size is run."""
FEW = range(1, 9)
"""Lengths that are tried besides the divisors of what an equation states."""
Numbers = dict[str, int]


@dataclass(frozen=True)
class SolvedLengths:
    """What open lengths must be: some are known by others, others are solved for together."""

    known: Mapping[str, Length] = field(default_factory=dict)
    solutions: Sequence[Numbers] = ()

    @classmethod
    def of(cls, equations: Iterable[Length]) -> SolvedLengths:
        known, left = solved(equations)
        return cls(known, tuple(_solutions(left)))

    @property
    def names(self) -> set[str]:
        """The lengths that equations speak of."""
        others = {name for length in self.known.values() for name in _names(length)}
        return {*self.known, *others, *(name for one in self.solutions[:1] for name in one)}

    def completed(self, chosen: Mapping[str, int]) -> Numbers:
        """All lengths, given those that inputs are free to have, which solutions may overrule."""
        free = dict.fromkeys(self.names, min(chosen.values(), default=1))
        numbers = {**free, **chosen, **self._nearest(chosen)}
        return {**numbers, **{name: number(each, numbers) for name, each in self.known.items()}}

    def _nearest(self, chosen: Mapping[str, int]) -> Numbers:
        """The solution that is nearest to what was chosen, by ratios."""

        def distance(solution: Numbers) -> float:
            both = [(size, chosen[name]) for name, size in solution.items() if name in chosen]
            return sum(abs(log(max(size, 1) / max(other, 1))) for size, other in both)

        return min(self.solutions, key=distance, default={})


def solved(equations: Iterable[Length]) -> tuple[dict[str, Length], list[Length]]:
    """Open lengths by others, such that each of the given lengths is zero, and equations left.

    What no lengths can fulfil is left out: it may come from a broadcast, which needs no equal ones.
    """
    known: dict[str, Length] = {}
    left: list[Length] = []
    for equation in equations:
        rest = primitive(replaced(equation, known))
        found = _given_by(rest)
        if found is None:
            left.append(rest)
            continue
        name, value = found
        known = {other: replaced(length, {name: value}) for other, length in known.items()}
        known[name] = value
    unsolved = [primitive(replaced(one, known)) for one in left]
    return known, [one for one in unsolved if len(_names(one)) > 1 or _has_solution(one)]


def _has_solution(equation: Length) -> bool:
    """Whether an equation of one open length has one."""
    return any(_sizes(equation, name) for name in _names(equation))


def number(length: Length, numbers: Mapping[str, int]) -> int:
    """What a length is whose open lengths are all known."""
    found = replaced(length, numbers)
    assert isinstance(found, int)
    return found


def _given_by(rest: Length) -> tuple[str, Length] | None:
    """The length that an equation gives, preferably as a sum of others without a difference."""
    terms = _terms(rest)
    ones = [
        (monomial[0], count)
        for monomial, count in terms
        if len(monomial) == 1
        and abs(count) == 1
        and sum(monomial[0] in other for other, _ in terms) == 1
    ]
    sums = [
        (name, count)
        for name, count in ones
        if all(c * count < 0 for other, c in terms if other != (name,))
    ]
    if not ones:
        return None
    name, count = (sums or ones)[-1]
    return name, product([-count, minus(rest, product([count, symbol(name)]))])


def _solutions(equations: Sequence[Length]) -> list[Numbers]:
    """Numbers from 1 on for which all equations hold."""
    search = _LengthSearch(tuple(equations))
    return list(search.below({}, equations)) if equations else []


@dataclass
class _LengthSearch:
    equations: Sequence[Length]
    steps: int = 0
    found: int = 0

    def below(self, numbers: Numbers, equations: Sequence[Length]) -> Iterator[Numbers]:
        """The solutions that begin with these numbers."""
        open_ones = [one for one in equations if not isinstance(one, int)]
        if any(isinstance(one, int) and one for one in equations):
            return
        if not open_ones:
            self.found += 1
            yield numbers
            return
        shortest = min(open_ones, key=lambda one: len(_names(one)))
        name = _most_entangled(shortest)
        for size in _sizes(shortest, name):
            self.steps += 1
            if self.steps > MOST_STEPS or self.found >= MOST_SOLUTIONS:
                return
            left = [replaced(one, {name: size}) for one in open_ones]
            yield from self.below({**numbers, name: size}, left)


def _most_entangled(equation: Length) -> str:
    """The length in most terms: what is left for the last follows by a division."""
    counts = Counter(name for monomial, _ in _terms(equation) for name in set(monomial))
    return min(counts, key=lambda name: (-counts[name], name))


def _sizes(equation: Length, name: str) -> list[int]:
    """The sizes of a length that may solve an equation: those that do, if no other is open."""
    terms = dict(_terms(equation))
    constant = abs(terms.get((), 0))
    divisors = _divisors(constant // gcd(*terms.values()))
    sizes = sorted(divisors if constant and len(terms) == 2 else {*FEW, *divisors})
    if _names(equation) != {name}:
        return sizes
    return [size for size in sizes if not replaced(equation, {name: size})]


def _divisors(whole: int) -> set[int]:
    if whole > MOST_ELEMENTS:
        return set()
    small = {size for size in range(1, isqrt(whole) + 1) if whole % size == 0}
    return small | {whole // size for size in small}


def _names(length: Length) -> set[str]:
    return {name for monomial, _ in _terms(length) for name in monomial}


def _terms(length: Length) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(length, int):
        return (((), length),) if length else ()
    return length.terms
