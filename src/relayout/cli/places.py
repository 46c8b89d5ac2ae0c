"""Files that a call names: none is written over another, or over one that is read."""

from __future__ import annotations

import argparse

READ = ("model", "before", "after", "feeds")
WRITTEN = ("output", "certificate", "report", "trace")


def check_places(options: argparse.Namespace) -> None:
    """Refuse two outputs at one place, and any in the place of a model, but for another model."""
    written = {name: getattr(options, name, None) for name in WRITTEN}
    if not any(written.values()):
        return
    from relayout.graph.io.destination import check_apart

    read = [getattr(options, name, None) for name in READ]
    check_apart((), written)
    if getattr(options, "writes_model", False):
        del written["output"]
    check_apart(read, written)
