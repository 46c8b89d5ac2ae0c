"""What is reported about the strategies side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from relayout.report.prompt import ShortRecord
from relayout.report.records import Figures
from relayout.report.regions import RegionRecord, regions_table
from relayout.report.text import bytes_text

BOUND = "lower bound"
COLUMNS = {
    "inserted": "Transposes put in, before neighbours cancel",
    "regions": "parts of the graph without a copy inside",
    "cost": "what the choice makes least, in one number",
    BOUND: "no choice among the variants offered costs less",
}
"""What the headings of the table stand for."""


@dataclass(frozen=True, slots=True)
class StrategyRecord:
    """What one strategy made of a model."""

    name: str
    inserted: int
    """Transposes that it puts in, before neighbouring ones cancel; those given are gone by then."""
    regions: int
    """Parts of the graph inside which nothing is copied."""
    left: Figures
    cost: int
    """What the strategies minimise, as this one left it; comparable between strategies only."""
    seconds: float
    """How long the strategy took to decide."""
    verified: bool
    """Whether the numbers are equal."""
    numbers: str
    """What the comparison of numbers came to, in a word."""
    verdict: str
    method: str = ""
    """The letter that it has in the document that compares methods of regions."""
    listed: tuple[RegionRecord, ...] = ()
    """Its regions, where they were asked for and it goes by regions."""

    @property
    def removed(self) -> int:
        """How many of the Transposes that it puts in cancel, or are taken in, afterwards."""
        return max(0, self.inserted - self.left.transposes)


@dataclass(frozen=True, slots=True, repr=False)
class ComparisonRecord(ShortRecord):
    """What `compare` reports."""

    source: str
    target: str
    given: Figures
    strategies: tuple[StrategyRecord, ...]
    bound: int
    """No choice among the variants offered costs less, as the exact strategy proves."""

    def to_json(self) -> dict[str, Any]:
        strategies = [{**asdict(each), "removed": each.removed} for each in self.strategies]
        return {**asdict(self), "strategies": strategies}


def comparison_text(record: ComparisonRecord, *, regions: bool = False) -> Iterator[RenderableType]:
    """The strategies side by side, or what each inserts and the regions that it goes by."""
    yield counts_table(record) if regions else comparison_table(record)
    for each in record.strategies if regions else ():
        if each.listed:
            yield regions_table(each.name, each.listed)
    for each in record.strategies:
        if not each.verified and each.verdict:
            yield escape(f"{each.name}: {each.verdict}")


def comparison_table(record: ComparisonRecord) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        caption="\n".join(f"{name}: {what}" for name, what in COLUMNS.items()),
        caption_justify="left",
    )
    table.add_column("strategy", no_wrap=True)
    for heading in ("inserted", "regions", "left", "moved", "cost", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("numbers")
    given = record.given
    table.add_row("as given", "", "", str(given.transposes), bytes_text(given.bytes_moved))
    for each in record.strategies:
        table.add_row(*_cells(each))
    table.add_row(BOUND, "", "", "", "", str(record.bound))
    return table


def counts_table(record: ComparisonRecord) -> Table:
    """What each method puts in, what of it goes again, and what is left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("strategy", no_wrap=True)
    table.add_column("method")
    for heading in ("inserted", "removed", "final", "regions"):
        table.add_column(heading, justify="right")
    for each in record.strategies:
        counts = (each.inserted, each.removed, each.left.transposes, each.regions)
        table.add_row(each.name, each.method or "-", *map(str, counts))
    return table


def _cells(record: StrategyRecord) -> tuple[str, ...]:
    return (
        record.name,
        str(record.inserted),
        str(record.regions),
        str(record.left.transposes),
        bytes_text(record.left.bytes_moved),
        str(record.cost),
        f"{record.seconds:.3f}",
        record.numbers if record.verdict else "-",
    )
