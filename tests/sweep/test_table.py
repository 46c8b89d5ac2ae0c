"""The table of a sweep answers questions over all models."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relayout.sweep.job import SWEPT, SweptCall
from relayout.sweep.pool import Pool
from relayout.sweep.run import ModelSweep
from relayout.sweep.table import row_of
from tests.sweep.test_sweep import STAND_IN, folder_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "sweep.md"


def test_a_row_has_what_the_command_told() -> None:
    asked = {"command": "check", "options": [], "version": "1"}
    row = row_of({"name": "m", "status": "failed", "asked": asked, "answer": {}})
    assert row["transposes_before"] is None
    assert row["kept"] == []


def test_the_query_of_the_document(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    folder = folder_of(tmp_path, "a", "b", "bad")
    sweep = ModelSweep.of([str(folder)], tmp_path / "out", SweptCall(SWEPT["optimize"]))
    written = sweep.write(sweep.run(Pool(2, STAND_IN), lambda _: None))
    table = tmp_path / "out" / "sweep.parquet"
    assert table in written
    (query,) = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    answer = duckdb.sql(query.replace("'swept/sweep.parquet'", f"'{table}'")).fetchall()
    assert answer == [("MatMul", 2, 128)]
