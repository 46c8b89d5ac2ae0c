"""Functions that nothing is known of, as keyed hashes of residues."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from relayout.verify.field.residues import PRIME, Residues

_Words = npt.NDArray[np.uint64]

FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
STEP = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
BLOCK = 1 << 15


def key_of(*parts: object) -> int:
    """A number of 64 bits for anything whose text states what it is."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


def mixed(words: _Words, key: int) -> _Words:
    """The finaliser of splitmix64: every bit of the result depends on every bit given."""
    given = words.reshape(-1)
    result = np.empty_like(given)
    spare = np.empty(min(given.size, BLOCK), np.uint64)
    for start in range(0, given.size, BLOCK):
        _mix(given[start : start + BLOCK], result[start : start + BLOCK], spare, key)
    return result.reshape(words.shape)


def _mix(given: _Words, result: _Words, spare: _Words, key: int) -> None:
    """One block, which stays in the cache."""
    spare = spare[: given.size]
    np.add(given, np.uint64(key & MASK), out=result)
    for shift, factor in ((30, FIRST_FACTOR), (27, SECOND_FACTOR), (31, None)):
        np.right_shift(result, np.uint64(shift), out=spare)
        np.bitwise_xor(result, spare, out=result)
        if factor is not None:
            np.multiply(result, factor, out=result)


def words_of(numbers: Residues) -> _Words:
    return np.ascontiguousarray(numbers, np.int64).view(np.uint64)


def residues_from(words: _Words) -> Residues:
    """The upper bits; the words are used up."""
    np.right_shift(words, np.uint64(33), out=words)
    np.remainder(words, np.uint64(PRIME), out=words)
    return words.view(np.int64)


def hashed(key: int, operands: Sequence[Residues]) -> Residues:
    """A function of the elements at one place of all operands, which have one shape."""
    state = mixed(words_of(operands[0]), key)
    for place, operand in enumerate(operands[1:], 1):
        state += mixed(words_of(operand), key + place * STEP)
        state = mixed(state, key)
    return residues_from(state)


def hashed_in_any_order(key: int, operands: Sequence[Residues]) -> Residues:
    """A function of the multiset of elements at one place of all operands."""
    total = mixed(words_of(operands[0]), key)
    for operand in operands[1:]:
        total += mixed(words_of(operand), key)
    return concluded(total, key)


def hashed_along(key: int, numbers: Residues, axes: Sequence[int], *, keep: bool) -> Residues:
    """A function of the multiset of elements along axes, as of `hashed_in_any_order`."""
    words = mixed(words_of(numbers), key)
    return concluded(np.sum(words, axis=tuple(axes), keepdims=keep, dtype=np.uint64), key)


def concluded(total: _Words, key: int) -> Residues:
    """The function of a multiset whose mixed elements have this sum."""
    return residues_from(mixed(np.asarray(total, np.uint64), key + STEP))


def digest(numbers: Residues) -> int:
    """A number for a whole tensor, with its shape."""
    content = np.ascontiguousarray(numbers, np.int64).tobytes()
    return key_of(numbers.shape, blake2b(content, digest_size=16).hexdigest())


def spread(key: int, shape: Sequence[int]) -> Residues:
    """A tensor in which every element is a hash of the key and its place."""
    places = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64)
    return residues_from(mixed(places * np.uint64(STEP), key)).reshape(tuple(shape))


def rank_words(numbers: Residues, key: int) -> _Words:
    """Numbers that order residues in a way of their own, as no order fits a field."""
    return mixed(words_of(numbers), key)
