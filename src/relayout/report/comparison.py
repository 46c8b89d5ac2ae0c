"""What is reported about the strategies side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from relayout.report.records import Figures
from relayout.report.text import bytes_text

BOUND = "lower bound"


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


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """What `compare` reports."""

    source: str
    target: str
    given: Figures
    strategies: tuple[StrategyRecord, ...]
    bound: int
    """No choice among the variants offered costs less, as the exact strategy proves."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def comparison_text(record: ComparisonRecord) -> Iterator[RenderableType]:
    yield comparison_table(record)
    for each in record.strategies:
        if not each.verified and each.verdict:
            yield escape(f"{each.name}: {each.verdict}")


def comparison_table(record: ComparisonRecord) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        caption=f"{BOUND}: no choice among the variants offered costs less",
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
