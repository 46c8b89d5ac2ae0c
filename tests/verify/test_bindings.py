"""Sizes are found for the open dimensions, or taken from the caller."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from relayout.verify.numeric import compare
from relayout.verify.verdict import NumericOptions
from tests.verify.models import constant, node, one_node, save, tensor


def blocks(path: Path, size: int) -> Path:
    """A model that refuses heights and widths that are not multiples of a size."""
    made = node("SpaceToDepth", ["x"], ["y"], blocksize=size)
    return save(path, [made], [tensor("x", ("N", 3, "H", "W"))], [tensor("y", (None,) * 4)])


def test_open_sizes_are_different_large_one_and_two(tmp_path: Path) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu", ("N", 3, "H"))
    verdict = compare(path, path)
    assert verdict.bindings == (
        {"N": 2, "H": 3},
        {"N": 2, "H": 64},
        {"N": 1, "H": 1},
        {"N": 2, "H": 2},
    )
    assert verdict.runs == 6


def test_a_name_has_one_size_in_all_inputs(tmp_path: Path) -> None:
    inputs = [tensor("a", ("N", "C")), tensor("b", ("C", "M"))]
    product = node("MatMul", ["a", "b"], ["y"])
    path = save(tmp_path / "a.onnx", [product], inputs, [tensor("y", ("N", "M"))])
    assert compare(path, path).bindings[0] == {"N": 2, "C": 3, "M": 5}


def test_nameless_dims_are_free_of_each_other(tmp_path: Path) -> None:
    for nameless in (None, "?"):
        path = one_node(tmp_path / "a.onnx", "Relu", (nameless, 4, nameless))
        assert compare(path, path).bindings[0] == {"x[0]": 2, "x[2]": 3}


def test_different_names_may_need_the_same_size(tmp_path: Path) -> None:
    inputs = [tensor("a", ("A", "B")), tensor("b", ("C", "D"))]
    where = [node("MatMul", ["a", "t"], ["y"]), node("Transpose", ["b"], ["t"], perm=[1, 0])]
    path = save(tmp_path / "a.onnx", where[::-1], inputs, [tensor("y", None)])
    assert compare(path, path).bindings[0] == {"A": 2, "B": 3, "C": 5, "D": 3}


def test_sizes_the_model_refuses_are_passed_over(tmp_path: Path) -> None:
    for size in (8, 56):
        path = blocks(tmp_path / "a.onnx", size)
        verdict = compare(path, path)
        assert verdict.exact
        assert all(b["H"] % size == 0 and b["W"] % size == 0 for b in verdict.bindings)


def test_an_open_size_may_have_to_be_that_of_a_fixed_axis(tmp_path: Path) -> None:
    """Shapes are not followed through sequences."""
    nodes = [
        node("SequenceConstruct", ["x"], ["s"]),
        node("SequenceAt", ["s", "first"], ["a"]),
        node("MatMul", ["a", "a"], ["y"]),
    ]
    first = constant("first", 0, np.int64)
    shape = ("N", 37)
    path = save(
        tmp_path / "a.onnx", nodes, [tensor("x", shape)], [tensor("y", (None,) * 2)], [first]
    )
    assert compare(path, path).bindings == ({"N": 37},)


def test_the_caller_gives_sizes(tmp_path: Path) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu", ("N", "M", None))
    options = NumericOptions(dims={"N": 4, "x[2]": 9})
    assert all(b == {"M": b["M"]} for b in compare(path, path, options).bindings)
    verdict = compare(path, path, NumericOptions(shapes={"x": (4, 5, 6)}))
    assert verdict.elements == 2 * 4 * 5 * 6


def test_sizes_the_caller_gives_and_the_model_refuses(tmp_path: Path) -> None:
    path = blocks(tmp_path / "a.onnx", 8)
    verdict = compare(path, path, NumericOptions(shapes={"x": (1, 3, 12, 16)}))
    assert verdict.status == "unknown"
    assert "SpaceToDepth" in verdict.reason


def test_a_dimension_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu", ("N",))
    assert "no dimension 'Q'" in compare(path, path, NumericOptions(dims={"Q": 1})).summary()
    assert "no input 'q'" in compare(path, path, NumericOptions(fixed={"q": 1})).summary()


def test_a_rank_that_is_not_given_is_found(tmp_path: Path) -> None:
    made = node("Transpose", ["x"], ["y"], perm=[0, 2, 1])
    path = save(tmp_path / "a.onnx", [made], [tensor("x", None)], [tensor("y", None)])
    assert compare(path, path).bindings[0] == {"x[0]": 2, "x[1]": 3, "x[2]": 5}


def gather(path: Path, table: list[float], shape: tuple[int | str, ...] = (64,)) -> Path:
    ids = tensor("ids", shape, 7)
    made = node("Gather", ["t", "ids"], ["y"])
    return save(path, [made], [ids], [tensor("y", shape)], [constant("t", table)])


def test_indices_stay_in_a_small_table(tmp_path: Path) -> None:
    path = gather(tmp_path / "a.onnx", [1.0, 2.0, 3.0])
    assert compare(path, path).exact


def test_indices_reach_all_of_a_table_unless_a_range_is_given(tmp_path: Path) -> None:
    table = np.arange(100.0)
    before = gather(tmp_path / "a.onnx", table.tolist())
    table[50:] += 1
    after = gather(tmp_path / "b.onnx", table.tolist())
    options = NumericOptions(integer_ranges={"ids": (0, 10)})
    assert compare(before, after, options).equal
    assert compare(before, after).status == "differs", "the table has 100 entries"
    assert compare(before, after, NumericOptions(fixed={"ids": 99})).status == "differs"


def test_positions_reach_along_open_axes(tmp_path: Path) -> None:
    table = np.arange(100.0)
    before = gather(tmp_path / "a.onnx", table.tolist(), ("N", "T"))
    table[50:] += 1
    after = gather(tmp_path / "b.onnx", table.tolist(), ("N", "T"))
    assert compare(before, after).status == "differs"
