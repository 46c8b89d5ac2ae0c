"""The table of the document on automatic NHWC, measured on a small network."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.resnet101 import document
from benchmarks.resnet101.measure import Times
from benchmarks.resnet101.networks import resnet

TIMES = Times(0.044, 0.043, 0.046, (0.043, 0.044, 0.046))
FASTER = Times(0.022, 0.021, 0.023, (0.0215, 0.022, 0.023))


def test_each_batch_has_the_ways_of_the_document_and_its_figures() -> None:
    lines = [document.Line(batch, document.EAGER, TIMES, FASTER, 1e-6) for batch in (16, 32, 64, 8)]
    head, rule, *rows, _, note = document.table(lines)
    assert head.count("|") == rule.count("|") == rows[0].count("|")
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert [row[8:10] for row in cells] == [
        *(["14 / 13 s", "1.08"], ["24 / 22 s", "1.09"], ["44 / 38 s", "1.16"], ["-", "-"]),
    ]
    assert cells[0][2:8] == [
        *("44.000", "43.000 to 46.000", "22.000", "21.000 to 23.000", "2.00", "44.0 / 22.0"),
    ]
    own = document.Line(16, document.COMPILED, TIMES, FASTER, 0.0, FASTER)
    assert [cells[0][10], str(own).split("|")[-2].strip()] == ["-", "22.000"]
    assert note == "Scores of both are at most 1.0e-06 apart."


def test_both_layouts_are_measured_and_agree() -> None:
    """Eagerly, on small images: no compiler and no GPU is needed."""
    setting = document.Setting("cpu", (1, 2), rounds=2, ways=(document.EAGER,), side=32)
    lines = list(document.measured(resnet("small", (1, 1)), setting))
    assert [(line.batch, line.way) for line in lines] == [(1, "eager"), (2, "eager")]
    for line in lines:
        assert line.apart < 1e-5
        assert line.first.low > 0
        assert len(line.last.each) == setting.rounds
