"""Damaged files end commands with a code of the table; many more: `benchmarks.fuzz_files`."""

from __future__ import annotations

import pytest

from benchmarks.fuzz_files import COMMANDS, called
from tests.suites.damaged_files import damaged_file, given_files

SEEDS = range(120)
WORDS = {name: COMMANDS[name] for name in ("inspect", "optimize", "fuse")}

FOUND = (1002, 1020, 1094, 1100, 1138, 1145, 1184, 1204, 1210, 1298, 1337, 1459, 1486, 1561, 1726)
"""Of the files that once ended in a fault of relayout's own, one for each cause."""


@pytest.mark.parametrize("seed", [*SEEDS, *FOUND, 3038, 3201, 10026, 10264])
def test_a_damaged_file_is_refused_or_copes(seed: int) -> None:
    data = damaged_file(seed)
    faults = [called(data, words).fault for words in WORDS.values()]
    assert faults == ["", "", ""]


def test_a_fault_would_be_seen() -> None:
    ended = called(given_files()[0], ("check", "IN", "--max-transposes", "0"))
    assert (ended.code, ended.fault) == (1, "")
    wrong = called(given_files()[0], ("optimize", "IN", "-o", "OUT.onnx", "--dim", "M=2"))
    assert (wrong.code, wrong.fault) == (2, "")


def test_the_same_seed_damages_alike() -> None:
    assert [damaged_file(seed) for seed in range(9)] == [damaged_file(seed) for seed in range(9)]
    assert len({damaged_file(seed) for seed in range(60)}) > 50
