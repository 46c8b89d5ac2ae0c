"""How many kernels known graphs need, by TVM's rules and by ours."""

from __future__ import annotations

import pytest

from relayout.fusion.traffic import traffic_of
from tests.fusion.grouping import grouped
from tests.fusion.tables import TABLE, Row


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_kernels(row: Row) -> None:
    tvm, ours = (traffic_of(grouped(row.graph, mode)) for mode in ("tvm", "relayout"))
    assert tvm.kernels == row.tvm
    assert ours.kernels <= min(row.most, tvm.kernels)
    assert ours.bytes_moved <= tvm.bytes_moved


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_fewer_kernels_move_fewer_bytes(row: Row) -> None:
    tvm, ours = (traffic_of(grouped(row.graph, mode)) for mode in ("tvm", "relayout"))
    assert (ours.bytes_moved < tvm.bytes_moved) == (ours.kernels < tvm.kernels)
