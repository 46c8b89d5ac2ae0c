"""Where a report goes: a page for browsers, and graphs for Model Explorer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.graph.io.destination import Destination, Document, Output, cannot_write, reason_of

if TYPE_CHECKING:
    from relayout.report.html.page import Page


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Places that were found to be ones that can be written to."""

    page: Destination | None = None
    graphs: tuple[tuple[str, Destination], ...] = ()
    """Files for Model Explorer by name."""

    @classmethod
    def of(cls, page: Output | None, explorer: str | PathLike[str] | None) -> ReportFiles:
        """The places of what was asked for; a folder that is not there is made."""
        graphs = () if explorer is None else tuple(_files(Path(explorer)))
        return cls(None if page is None else Destination.of(page), graphs)

    @property
    def are_asked(self) -> bool:
        return self.page is not None or bool(self.graphs)

    def documents(self, page: Page) -> Iterator[Document]:
        """What a page holds, for each of the places."""
        if self.page is not None:
            yield Document(self.page, page.html().encode())
        if self.graphs:
            from relayout.report.explorer import explorer_files

            contents = explorer_files(page.title, page.before, page.after)
            for name, place in self.graphs:
                yield Document(place, json.dumps(contents[name]).encode())


def _files(folder: Path) -> Iterator[tuple[str, Destination]]:
    from relayout.report.explorer import GRAPHS, NODE_DATA

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, reason_of(error)) from None
    for name in (GRAPHS, NODE_DATA):
        yield name, Destination.of(folder / name)
