"""Where the parts of a function were before they were moved into it, as a line of text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

PRIMITIVE = "relayout.primitive"
"""The metadata of a function that is one kernel and was made of nodes of its caller."""

NODES = "relayout.nodes"
INITIALIZERS = "relayout.initializers"
VALUE_INFO = "relayout.value_info"
"""The metadata of such a function that records where its parts were."""

ORDER = "relayout.order"
"""The metadata of a body that records where the nodes it still has were, if they moved."""

IR_VERSION = "relayout.ir_version"
"""The metadata of a model that had a version of the file format without functions."""

COPY = "*"
"""The place of what was only copied, because others need it where it was."""


def places_text(places: Iterable[int | None]) -> str:
    """Places in words; those that follow each other are written as a range."""
    runs: list[list[int]] = []
    words: list[str | list[int]] = []
    for place in places:
        if place is None:
            words.append(COPY)
        elif words and words[-1] is not COPY and runs[-1][-1] == place - 1:
            runs[-1][-1] = place
        else:
            runs.append([place, place])
            words.append(runs[-1])
    return " ".join(word if isinstance(word, str) else _range_text(*word) for word in words)


def places_of(text: str) -> list[int | None]:
    """The places that `places_text` wrote; raises ValueError for any other text."""
    return list(chain.from_iterable(map(_places_of_word, text.split())))


def _range_text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _places_of_word(word: str) -> Iterable[int | None]:
    if word == COPY:
        return [None]
    first, _, last = word.partition("-")
    return range(int(first), int(last or first) + 1)
