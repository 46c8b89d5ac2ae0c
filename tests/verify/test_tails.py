"""Numbers at the end of a Sigmoid are rounded as 1 is, and judged so; others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from relayout.verify.numeric import compare
from tests.verify.models import constant, node, save, tensor

SHAPE = (1, 4, 40)


def _saturated(path: Path, *, spelt_out: bool, below: float = 17.0, head: str = "") -> Path:
    """A Sigmoid of numbers about -17, by the operator or by what it means."""
    nodes = [node("Sub", ["x", "below"], ["s"])]
    if spelt_out:
        nodes += [node("Neg", ["s"], ["n"]), node("Exp", ["n"], ["e"])]
        nodes += [node("Add", ["e", "one"], ["f"]), node("Reciprocal", ["f"], ["p"])]
    else:
        nodes.append(node("Sigmoid", ["s"], ["p"]))
    if head == "Transpose":
        nodes.append(node("Transpose", ["p"], ["y"], perm=[0, 2, 1]))
    else:
        nodes.append(node(head or "Identity", ["p"], ["y"]))
    constants = [constant("below", below), constant("one", 1.0)]
    return save(path, nodes, [tensor("x", SHAPE)], [tensor("y", None)], constants)


@pytest.mark.parametrize("head", ["", "Transpose"])
def test_the_tail_of_a_sigmoid_is_rounding(tmp_path: Path, head: str) -> None:
    before = _saturated(tmp_path / "a.onnx", spelt_out=False, head=head)
    after = _saturated(tmp_path / "b.onnx", spelt_out=True, head=head)
    assert compare(before, after).equal


def test_a_tail_that_is_made_large_again_is_none(tmp_path: Path) -> None:
    before = _saturated(tmp_path / "a.onnx", spelt_out=False, head="Sqrt")
    after = _saturated(tmp_path / "b.onnx", spelt_out=True, head="Sqrt")
    assert not compare(before, after).equal


def test_another_function_of_larger_numbers_still_differs(tmp_path: Path) -> None:
    before = _saturated(tmp_path / "a.onnx", spelt_out=False, below=9.0)
    after = _saturated(tmp_path / "b.onnx", spelt_out=False, below=9.01)
    assert not compare(before, after).equal
