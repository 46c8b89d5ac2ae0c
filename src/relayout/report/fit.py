"""What of a model does not fit a device, and its form for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from relayout.report.prompt import ShortRecord
from relayout.report.text import bytes_text

MOST_NAMES = 8
"""Nodes that are listed by name for one reason."""


@dataclass(frozen=True, slots=True)
class MisfitRecord:
    """One place of a model that a device does not take as it is."""

    where: str
    """The name of a node, of an input or of an output; empty for the model."""
    operator: str
    why: str
    source: str
    """Where the limit is stated."""
    bytes_copied: int
    """What is copied to run it elsewhere, or to bring it into another order."""


@dataclass(frozen=True, slots=True, repr=False)
class FitRecord(ShortRecord):
    """What of a model does not fit a profile, and what fits but costs a copy."""

    path: str
    profile: str
    misfits: tuple[MisfitRecord, ...]
    copied: tuple[MisfitRecord, ...]
    """Inputs and outputs in another order than the device reads without a copy."""

    @property
    def fits(self) -> bool:
        return not self.misfits

    @property
    def summary(self) -> str:
        if self.fits:
            return f"fits {self.profile}"
        places = {each.where: each for each in self.misfits}
        copied = bytes_text(sum(each.bytes_copied for each in places.values()))
        many = "place does" if len(places) == 1 else "places do"
        return f"{len(places)} {many} not fit {self.profile}; {copied} copied"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.fits}


def fit_text(record: FitRecord, *, every: bool) -> Iterator[RenderableType]:
    """One paragraph a reason, with the places it holds for."""
    yield escape(f"{record.path}: {record.summary}")
    for found in (record.misfits, record.copied):
        for (operator, why, source), group in groupby(sorted(found, key=_reason), key=_reason):
            yield from _paragraph(operator, why, source, list(group), every=every)


def _paragraph(
    operator: str, why: str, source: str, places: list[MisfitRecord], *, every: bool
) -> Iterator[RenderableType]:
    copied = sum(each.bytes_copied for each in places)
    times = f", {len(places)} times" if len(places) > 1 else ""
    yield f"  {escape(operator)}: {escape(why)}{times}; {bytes_text(copied)}"
    yield f"    {escape(', '.join(_names(places, every=every)))}"
    yield f"    stated by {escape(source)}"


def _reason(record: MisfitRecord) -> tuple[str, str, str]:
    return record.operator, record.why, record.source


def _names(places: list[MisfitRecord], *, every: bool) -> list[str]:
    names = [each.where for each in places if each.where] or ["the model"]
    if every or len(names) <= MOST_NAMES:
        return names
    return [*names[:MOST_NAMES], f"and {len(names) - MOST_NAMES} more"]
