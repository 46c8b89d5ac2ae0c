"""Lengths as sums of open lengths, and what equations between them make of the open ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OpenLength:
    """A constant and whole multiples of open lengths, such as past + new + 1."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, dim: int | str) -> OpenLength:
        return cls(constant=dim) if isinstance(dim, int) else cls(((dim, 1),))

    @property
    def fixed(self) -> int | None:
        return None if self.terms else self.constant

    def __add__(self, other: OpenLength) -> OpenLength:
        terms = dict(self.terms)
        for name, count in other.terms:
            terms[name] = terms.get(name, 0) + count
        kept = tuple((name, count) for name, count in terms.items() if count)
        return OpenLength(tuple(sorted(kept)), self.constant + other.constant)

    def __sub__(self, other: OpenLength) -> OpenLength:
        return self + other.times(-1)

    def times(self, factor: int) -> OpenLength:
        if not factor:
            return OpenLength()
        return OpenLength(tuple((n, c * factor) for n, c in self.terms), self.constant * factor)

    def divided(self, divisor: int) -> OpenLength | None:
        counts = [self.constant, *(count for _, count in self.terms)]
        if not divisor or any(count % divisor for count in counts):
            return None
        terms = tuple((name, count // divisor) for name, count in self.terms)
        return OpenLength(terms, self.constant // divisor)

    def put(self, known: Mapping[str, OpenLength]) -> OpenLength:
        """The length once some of the open ones are known by others."""
        total = OpenLength(constant=self.constant)
        for name, count in self.terms:
            total = total + known.get(name, OpenLength.of(name)).times(count)
        return total

    def under(self, binding: Mapping[str, int]) -> int | None:
        """The number that it is, or None if not all of its open lengths have one."""
        if any(name not in binding for name, _ in self.terms):
            return None
        return self.constant + sum(count * binding[name] for name, count in self.terms)


def solved(equations: Iterable[OpenLength]) -> dict[str, OpenLength]:
    """Open lengths by others, such that each of the given lengths is zero.

    An equation that can only hold for some whole numbers is left out: it may come from a
    broadcast, which needs no equal lengths.
    """
    known: dict[str, OpenLength] = {}
    for equation in equations:
        rest = equation.put(known)
        name = _to_solve(rest)
        if name is None:
            continue
        count = dict(rest.terms)[name]
        value = (rest - OpenLength(((name, count),))).times(-count)
        known = {other: length.put({name: value}) for other, length in known.items()}
        known[name] = value
    return known


def _to_solve(rest: OpenLength) -> str | None:
    """The length that an equation gives, preferably as a sum of others without a difference."""
    ones = [(name, count) for name, count in rest.terms if abs(count) == 1]
    sums = [
        name
        for name, count in ones
        if all(c * count < 0 for n, c in rest.terms if n != name) and rest.constant * count <= 0
    ]
    names = sums or [name for name, _ in ones]
    return names[-1] if names else None
