"""Records at a prompt: short, however much they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from textwrap import shorten
from typing import Any, ClassVar

LONGEST = 400
"""Characters of a record."""
LONGEST_TEXT = 100
FEW = 3
"""Parts that are shown rather than counted."""


def at_a_prompt(text: str) -> str:
    return shorten(text, LONGEST_TEXT, placeholder=" ...")


class ShortRecord:
    """A record whose parts are counted at a prompt where there are many."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __repr__(self) -> str:
        text = f"{type(self).__name__}({', '.join(self._parts())})"
        return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."

    def _parts(self) -> Iterator[str]:
        for field in fields(self):
            value = getattr(self, field.name)
            if value or isinstance(value, int):
                yield f"{field.name}={_brief(value)}"


def _brief(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]} ...")
    if isinstance(value, dict | tuple) and len(value) > FEW:
        return f"<{len(value)}>"
    return repr(value)
