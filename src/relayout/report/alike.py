"""Transposes that are there for the same reason, told once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from relayout.report.explanation import Demands
from relayout.report.records import TransposeRecord

_NUMBER = re.compile(r"\d+")
_AXES = re.compile(r"\s*\d+(?:(?:, | and | to )\d+)*\s*")
"""Axes as they are listed in reasons."""


@dataclass(frozen=True, slots=True)
class AlikeTransposes:
    """Transposes that the same kinds of operators demand for the same reasons."""

    records: tuple[TransposeRecord, ...]

    @property
    def first(self) -> TransposeRecord:
        return self.records[0]

    @property
    def bytes_moved(self) -> int:
        return sum(record.bytes_moved for record in self.records)

    @property
    def others(self) -> str:
        """How many more there are, and where, as far as names tell."""
        more = len(self.records) - 1
        where = span_of([record.name for record in self.records[1:]])
        perms = len({record.perm for record in self.records})
        kinds = f", {perms} perms" if perms > 1 else ""
        return f"{more} more like it" + (f", in {where}" if where else "") + kinds


def grouped(records: Sequence[TransposeRecord]) -> list[AlikeTransposes]:
    """Groups of what is alike, those that move most first."""
    found: dict[object, list[TransposeRecord]] = {}
    for record in sorted(records, key=lambda record: -record.bytes_moved):
        why = record.why
        sides = _kinds(why.stored_for), _kinds(why.wanted_by)
        # Without a conflict to name, only the perm tells what a Transpose does.
        perm = None if why.stored_for.named or why.wanted_by.named else record.perm
        key = perm, why.note, *sides
        found.setdefault(key, []).append(record)
    groups = [AlikeTransposes(tuple(each)) for each in found.values()]
    return sorted(groups, key=lambda group: -group.bytes_moved)


def _kinds(demands: Demands) -> tuple[object, ...]:
    """Which operators demand what, on whichever axes."""
    kinds = {(demand.op_type, _AXES.sub(" # ", demand.reason)) for demand in demands.named}
    return (*sorted(kinds), bool(demands.more))


def span_of(names: Sequence[str]) -> str:
    """'blocks.1 to blocks.11' for names that differ in one number only."""
    patterns = {_NUMBER.sub("#", name) for name in names}
    if len(patterns) != 1 or len(names) < 2:
        return ""
    numbers = [list(map(int, _NUMBER.findall(name))) for name in names]
    varying = [i for i, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1]
    places = {column for i in varying for column in [tuple(row[i] for row in numbers)]}
    if len(places) != 1:
        return ""
    column = next(iter(places))
    low, high = (names[column.index(limit)] for limit in (min(column), max(column)))
    place = list(_NUMBER.finditer(low))[varying[0]].start()
    return f"{_part(low, place)} to {_part(high, place)}"


def _part(name: str, place: int) -> str:
    """The part of a path that holds the character at this place."""
    begin = max(name.rfind(mark, 0, place) for mark in "/:") + 1
    end = min((at for mark in "/:" if (at := name.find(mark, place)) >= 0), default=len(name))
    return name[begin:end]
