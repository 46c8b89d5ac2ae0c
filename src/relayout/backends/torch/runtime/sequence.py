"""Sequences of tensors, which are never changed in place."""

from __future__ import annotations

from typing import Any


def inserted(sequence: list[Any], item: Any, place: int) -> list[Any]:
    place = place % len(sequence) if place < 0 else place
    return [*sequence[:place], item, *sequence[place:]]


def erased(sequence: list[Any], place: int) -> list[Any]:
    place = place % len(sequence)
    return [*sequence[:place], *sequence[place + 1 :]]


def split_to_list(x: Any, lengths: Any, axis: int, keeps: bool) -> list[Any]:
    if lengths is not None:
        return list(x.split(lengths, axis))
    return list(x.split(1, axis)) if keeps else list(x.unbind(axis))
