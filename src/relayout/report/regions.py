"""What is reported about the regions that strategies decide about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.markup import escape
from rich.table import Table

from relayout.report.text import shortened

MEMBERS_SHOWN = 4
BORDERS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class BorderRecord:
    """A Transpose between a region and what is around it."""

    tensor: str
    enters: bool
    """Whether the region reads it; it leaves otherwise."""
    stored: str
    """The layout in which the tensor is stored."""
    wanted: str
    """The layout of the copy."""


@dataclass(frozen=True, slots=True)
class RegionRecord:
    """Operators that a strategy decided about together."""

    members: tuple[str, ...]
    layout_class: str
    """Feature, Weight, Tensor or NTensor: what its operators make."""
    given: str
    """The layout of what it makes, in the model as given; of the first that changed, if any did."""
    layout: str
    """That layout now."""
    flipped: bool
    why: str
    borders: tuple[BorderRecord, ...]


def regions_table(name: str, regions: Sequence[RegionRecord]) -> Table:
    """The regions of one strategy."""
    table = Table(
        box=box.SIMPLE_HEAD, title=f"regions of {name}", title_justify="left", title_style="bold"
    )
    for heading in ("members", "class", "layout", "border Transposes", "why"):
        table.add_column(heading, overflow="fold")
    for region in regions:
        table.add_row(*(escape(cell) for cell in _cells(region)))
    return table


def _cells(region: RegionRecord) -> tuple[str, ...]:
    change = f"{region.given} -> {region.layout}" if region.flipped else region.given
    verdict = "flipped" if region.flipped else "kept"
    return (
        _listed([shortened(name) for name in region.members], MEMBERS_SHOWN, ", "),
        region.layout_class,
        change,
        _listed([_border(each) for each in region.borders], BORDERS_SHOWN, "\n") or "-",
        f"{verdict}: {region.why}",
    )


def _border(border: BorderRecord) -> str:
    side = "in" if border.enters else "out"
    return f"{side} {shortened(border.tensor)} {border.stored} -> {border.wanted}"


def _listed(texts: Sequence[str], most: int, between: str) -> str:
    hidden = len(texts) - most
    shown = [*texts[:most], f"{hidden} more"] if hidden > 0 else texts
    return between.join(shown)
