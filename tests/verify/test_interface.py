"""Callers notice names, order, types and shapes."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto

from relayout.verify.numeric import compare
from tests.verify.models import Value, constant, node, save, tensor


def model(path: Path, inputs: list[Value], outputs: list[Value]) -> Path:
    nodes = [node("Identity", [i.name], [o.name]) for i, o in zip(inputs, outputs, strict=False)]
    return save(path, nodes, inputs, outputs)


GIVEN = ([tensor("a", (2, "N")), tensor("b", (2, "N"))], [tensor("y", None), tensor("z", None)])
CHANGES = {
    "input renamed": ([tensor("c", (2, "N")), GIVEN[0][1]], GIVEN[1]),
    "input order": (GIVEN[0][::-1], GIVEN[1]),
    "input type": ([tensor("a", (2, "N"), TensorProto.DOUBLE), GIVEN[0][1]], GIVEN[1]),
    "input rank": ([tensor("a", (2, "N", 1)), GIVEN[0][1]], GIVEN[1]),
    "input fixed": ([tensor("a", (2, 3)), GIVEN[0][1]], GIVEN[1]),
    "input missing": (GIVEN[0][:1], GIVEN[1][:1]),
    "output renamed": (GIVEN[0], [tensor("w", None), GIVEN[1][1]]),
    "output order": (GIVEN[0], GIVEN[1][::-1]),
    "output type": (GIVEN[0], [tensor("y", None, TensorProto.DOUBLE), GIVEN[1][1]]),
    "output shape": (GIVEN[0], [tensor("y", (2, "M")), GIVEN[1][1]]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_reported(tmp_path: Path, change: str) -> None:
    before = model(tmp_path / "a.onnx", *GIVEN)
    after = model(tmp_path / "b.onnx", *CHANGES[change])
    verdict = compare(before, after)
    assert verdict.status == "differs"
    assert change.split(maxsplit=1)[0] in verdict.reason
    assert verdict.runs == 0


def test_the_same_interface_is_not_a_change(tmp_path: Path) -> None:
    path = model(tmp_path / "a.onnx", *GIVEN)
    assert compare(path, path).exact


def with_weight(path: Path, *, listed: bool, ir_version: int) -> Path:
    inputs = [tensor("x", (2,)), *([tensor("w", (2,))] if listed else [])]
    add = node("Add", ["x", "w"], ["y"])
    weight = constant("w", [1, 2])
    return save(path, [add], inputs, [tensor("y", (2,))], [weight], ir_version=ir_version)


def test_a_lost_default_is_a_change(tmp_path: Path) -> None:
    before = with_weight(tmp_path / "a.onnx", listed=True, ir_version=8)
    after = with_weight(tmp_path / "b.onnx", listed=False, ir_version=8)
    assert "optional input" in compare(before, after).reason


def test_old_formats_list_weights_that_no_caller_gives(tmp_path: Path) -> None:
    before = with_weight(tmp_path / "a.onnx", listed=True, ir_version=3)
    after = with_weight(tmp_path / "b.onnx", listed=False, ir_version=8)
    assert compare(before, after).exact
