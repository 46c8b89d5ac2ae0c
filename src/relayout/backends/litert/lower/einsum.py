"""Sums of products by an equation: movements of axes, sums, and products of matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relayout.backends.litert.builder import GraphBuilder
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.ops.einsum import equation_of


@dataclass(frozen=True, slots=True)
class _Factor:
    """A tensor with a letter for each of its axes; none has one place only."""

    tensor: FlatTensor
    letters: str
    build: GraphBuilder

    @classmethod
    def of(cls, tensor: FlatTensor, letters: str, build: GraphBuilder) -> _Factor:
        kept = [place for place, length in enumerate(tensor.shape) if length != 1]
        whole = build.reshape(tensor, [tensor.shape[place] for place in kept])
        return cls(whole, "".join(letters[place] for place in kept), build)

    @property
    def lengths(self) -> dict[str, int]:
        return dict(zip(self.letters, self.tensor.shape, strict=True))

    def only(self, wanted: Iterable[str]) -> str:
        """The letters among those wanted, in the order of the axes."""
        found = set(wanted)
        return "".join(letter for letter in self.letters if letter in found)

    def summed_to(self, wanted: Iterable[str]) -> _Factor:
        """Along every axis that nothing else needs."""
        kept = self.only(wanted)
        axes = [place for place, letter in enumerate(self.letters) if letter not in kept]
        tensor = self.build.reduce("SUM", self.tensor, axes, keep=False)
        return _Factor(tensor, kept, self.build)

    def ordered(self, letters: str) -> _Factor:
        perm = [self.letters.index(letter) for letter in letters]
        return _Factor(self.build.transpose(self.tensor, perm), letters, self.build)

    def in_groups(self, *groups: str) -> FlatTensor:
        """With an axis for each group of letters."""
        tensor, lengths = self.ordered("".join(groups)).tensor, self.lengths
        return self.build.reshape(tensor, [_size(group, lengths) for group in groups])

    def times(self, other: _Factor, kept: set[str]) -> _Factor:
        """The product, summed along every axis of both that is not kept."""
        left = self.summed_to(kept | set(other.letters))
        right = other.summed_to(kept | set(self.letters))
        shared = set(left.letters) & set(right.letters)
        batch, summed = left.only(shared & kept), left.only(shared - kept)
        rows, columns = left.only(set(left.letters) - shared), right.only(kept - shared)
        made = self.build.product(
            left.in_groups(batch, rows, summed), right.in_groups(batch, summed, columns)
        )
        lengths, letters = {**left.lengths, **right.lengths}, batch + rows + columns
        whole = self.build.reshape(made, [lengths[letter] for letter in letters])
        return _Factor(whole, letters, self.build)


def einsum(call: LiteCall) -> FlatTensor:
    operands = [call.tensor(index) for index in range(len(call.operands))]
    if any(operand.dtype.kind != "f" for operand in operands):
        raise call.refusal("LiteRT has no products of whole numbers")
    shape = call.result
    ranks = [operand.rank for operand in operands]
    terms = None if shape is None else equation_of(call.view).axes([*ranks, len(shape)])
    if shape is None or terms is None:
        raise call.refusal("its equation does not fit what it reads")
    if any(len(set(term)) < len(term) for term in terms):
        raise call.refusal("its equation takes a diagonal")
    *given, result = terms
    factors = [
        _Factor.of(operand, term, call.build) for operand, term in zip(operands, given, strict=True)
    ]
    product = factors[0]
    for place, factor in enumerate(factors[1:], 1):
        later = "".join(each.letters for each in factors[place + 1 :])
        product = product.times(factor, {*result, *later})
    product = product.summed_to(result)
    whole = product.ordered("".join(letter for letter in result if letter in product.letters))
    return call.build.reshape(whole.tensor, shape)


def _size(group: str, lengths: Mapping[str, int]) -> int:
    return math.prod(lengths[letter] for letter in group)


LOWERINGS: dict[str, LiteLowering] = {"Einsum": einsum}
