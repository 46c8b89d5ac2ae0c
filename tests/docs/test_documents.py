"""docs/documents.md: every point of the founding documents has a row, and what it names exists."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator

import pytest

from docs.layers import ROOT
from relayout.cli import command_parser

PAGE = ROOT / "docs" / "documents.md"
ROW = re.compile(r"^\| ([A-Z0-9]+(?:\.\w+)?) \| (.+?) \| (.+?) \| (.+) \|$", flags=re.MULTILINE)
TEST = re.compile(r"tests/[\w/]+\.py::\w+")
CODE = re.compile(r"`([^`]+)`")
DONE, NOTHING, NOT_BUILT = "done", "nothing to do", "not built: "

POINTS = {
    "D0": (12, {"E": 5, "L": 4, "X": 17}),
    "D1": (9, {"E": 3, "U": 5, "X": 10}),
    "D2": (22, {"E": 6, "X": 12}),
    "D3": (9, {"E": 2, "U": 5, "X": 4}),
    "D4": (11, {"E": 2, "U": 1, "X": 10}),
    "P": (7, {}),
}
"""By document how many requirements there are, and how many points of each other kind."""
MORE = ("D2.E3b", "D3.Use", "6.1", "6.2", "6.4", "6.6", "P.U", "P.L")
COMMON = 13
"""How many requirements all documents have in common."""


def expected() -> Iterator[str]:
    for document, (count, kinds) in POINTS.items():
        yield from (f"{document}.{number + 1}" for number in range(count))
        for kind, many in kinds.items():
            yield from (f"{document}.{kind}{number + 1}" for number in range(many))
    yield from MORE
    yield from (f"R{number + 1}" for number in range(COMMON))


ROWS: dict[str, tuple[str, str]] = {
    row[0]: (row[2], row[3]) for row in ROW.findall(PAGE.read_text(encoding="utf-8"))
}
ROWS.pop("id", None)


def test_every_point_has_one_row() -> None:
    found = Counter(row[0] for row in ROW.findall(PAGE.read_text(encoding="utf-8")))
    assert found == Counter(expected())


@pytest.mark.parametrize("point", ROWS)
def test_what_is_done_is_shown_and_what_is_not_has_a_reason(point: str) -> None:
    state, shown = ROWS[point]
    if state == DONE:
        assert CODE.findall(shown) or "](" in shown
        return
    assert shown == "-"
    assert state == NOTHING or len(state) > len(NOT_BUILT) + 20
    assert state == NOTHING or state.startswith(NOT_BUILT)


@pytest.mark.parametrize("point", ROWS)
def test_what_a_row_names_exists(point: str) -> None:
    _, shown = ROWS[point]
    for code in CODE.findall(shown):
        assert _exists(code), code


def _exists(code: str) -> bool:
    if TEST.fullmatch(code):
        path, _, name = code.partition("::")
        file = ROOT / path
        return file.exists() and f"\ndef {name}(" in file.read_text(encoding="utf-8")
    program, *words = shlex.split(code)
    if program == "relayout":
        command_parser().parse_args(words)
        return True
    if program != "python":
        return False
    module = ROOT.joinpath(*words[1].split("."))
    return module.with_suffix(".py").exists() or module.is_dir()


@pytest.mark.parametrize(
    "code",
    [
        "tests/docs/test_documents.py::test_of_no_name",
        "tests/no_file.py::test_what_a_row_names_exists",
        "python -m benchmarks.none",
        "some text",
    ],
)
def test_what_does_not_exist_is_seen(code: str) -> None:
    assert not _exists(code)
