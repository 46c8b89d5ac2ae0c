"""Writes the parts of the documents that are made from the code: `python -m docs`."""

from __future__ import annotations

from docs.generated import write_all

write_all()
