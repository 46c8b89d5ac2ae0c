"""Views: operators that only say anew what each dimension counts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import accumulate

from relayout.verify.proof.constants import Array, arranged, constant
from relayout.verify.proof.lengths import Length, fits_only_as, product, times
from relayout.verify.proof.pieces import Dim, cut, extent, free
from relayout.verify.proof.table import NotKnownError, TermTable, TermValue


def transposed(value: TermValue, perm: Sequence[int]) -> TermValue:
    dims = value.known_dims
    return replace(value, dims=tuple(dims[axis] for axis in perm), data=None)


def reshaped(table: TermTable, value: TermValue, lengths: Sequence[Length]) -> TermValue:
    """The value with other lengths over the same elements in the same order."""
    whole, wanted = product(list(value.shape)), product(list(lengths))
    if whole != wanted:
        table.must_equal(whole, wanted)
        raise NotKnownError("a Reshape between lengths that are not known to fit")
    pieces = table.unflattened(value.pieces)
    groups = cut(pieces, lengths)
    if groups is not None:
        return replace(value, dims=tuple(groups))
    if value.term in table.arrays and not _symbolic(value):
        array = array_of(table, value)
        return constant(table, array.reshape([_number(n) for n in lengths]))
    return replace(value, dims=tuple(_broken(table, pieces, lengths)))


def _broken(table: TermTable, pieces: Dim, lengths: Sequence[Length]) -> list[Dim]:
    """The groups of lengths where a border falls into a piece: such parts are counted anew.

    Between places where borders meet, a part that cannot be cut becomes an index of its own, the
    row-major number of its elements.
    """
    befores = [1, *accumulate((piece.extent for piece in pieces), times)]
    afters = [1, *accumulate(lengths, times)]
    result: list[Dim] = []
    start, begun = 0, 0
    for end, reached in enumerate(afters):
        if end == 0 or reached not in befores[start:]:
            continue
        stop = len(pieces) if end == len(lengths) else start + befores[start:].index(reached)
        part = pieces[start:stop]
        groups = cut(part, lengths[begun:end])
        if groups is None:
            groups = cut(table.flattened(part), lengths[begun:end])
        if groups is None:
            raise NotKnownError("a Reshape that cannot be followed")
        result += groups
        start, begun = stop, end
    return result


def expanded(table: TermTable, value: TermValue, lengths: Sequence[Length]) -> TermValue:
    """The value repeated along unit axes to the given lengths, by the rules of broadcasting."""
    rank = max(len(lengths), value.rank)
    dims = ((),) * (rank - value.rank) + value.known_dims
    wanted = (1,) * (rank - len(lengths)) + tuple(lengths)
    result = []
    for dim, length in zip(dims, wanted, strict=True):
        here = extent(dim)
        if here not in (1, length) and length != 1:
            if fits_only_as(here, length):
                table.must_equal(here, length)
            table.guesses[here, length] = None
            raise NotKnownError("an Expand between lengths that are not known to fit")
        result.append(free(length) if here == 1 else dim)
    return TermValue(value.term, tuple(result))


def squeezed(table: TermTable, value: TermValue, axes: Sequence[int] | None) -> TermValue:
    dims = value.known_dims
    if axes is None:
        gone = {i for i, dim in enumerate(dims) if not dim}
        if any(not isinstance(extent(dim), int) for dim in dims):
            raise NotKnownError("a Squeeze of open lengths")
    else:
        gone = {axis % len(dims) for axis in axes}
    if any(dims[axis] for axis in gone):
        for axis in gone:
            table.must_equal(extent(dims[axis]), 1)
        raise NotKnownError("a Squeeze of a length that is not known to be 1")
    return replace(value, dims=tuple(dim for i, dim in enumerate(dims) if i not in gone))


def unsqueezed(value: TermValue, axes: Sequence[int]) -> TermValue:
    rank = value.rank + len(axes)
    new = {axis % rank for axis in axes}
    left = iter(value.known_dims)
    return replace(value, dims=tuple(() if i in new else next(left) for i in range(rank)))


def array_of(table: TermTable, value: TermValue) -> Array:
    """The numbers of a constant, as this value stores them."""
    return arranged(table.arrays[value.term], value.known_dims)


def exact(table: TermTable, value: TermValue | None) -> Hashable:
    """What makes a tensor: the same for all that hold the same numbers in the same places."""
    if value is None:
        return None
    if value.term in table.arrays and value.dims is not None and not _symbolic(value):
        value = constant(table, array_of(table, value))
    return value.term, value.dims


def _symbolic(value: TermValue) -> bool:
    return any(not isinstance(n, int) for n in value.shape)


def _number(length: Length) -> int:
    if not isinstance(length, int):
        raise NotKnownError("a constant of open lengths")
    return length
