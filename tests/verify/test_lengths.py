"""Open lengths that depend on one another are solved for; values are read off the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from relayout.verify.equations import SolvedLengths, solved
from relayout.verify.numeric import compare
from relayout.verify.proof.lengths import minus, plus, product, symbol, times
from tests.verify.models import constant, node, save, tensor

INT64 = 7


def test_equations_are_solved_for_sums() -> None:
    past, new, total, width = (symbol(name) for name in ("past", "new", "total", "width"))
    equations = [minus(total, plus(past, new)), minus(minus(width, 4), total)]
    known, left = solved(equations)
    assert known["total"] == plus(past, new)
    assert known["width"] == plus(plus(past, new), 4)
    assert not left
    assert SolvedLengths.of(equations).completed({"past": 3, "new": 2})["width"] == 9
    assert solved([minus(times(2, past), 3)]) == ({}, []), "it has no whole solution"


def test_products_are_solved_in_whole_numbers() -> None:
    a, b, c = (symbol(name) for name in "abc")
    lengths = SolvedLengths.of([minus(product([a, b, c, 6]), 192), minus(times(2, c), times(a, b))])
    found = lengths.completed({"a": 2, "b": 3, "c": 5})
    assert found["a"] * found["b"] * found["c"] == 32
    assert 2 * found["c"] == found["a"] * found["b"]
    assert SolvedLengths.of([minus(times(a, b), 7)]).completed({"a": 6, "b": 1}) == {"a": 7, "b": 1}


def test_counts_that_nothing_runs_are_not_taken_apart() -> None:
    """A declared length may be anything; its divisors would be looked for all day."""
    a, b = symbol("a"), symbol("b")
    assert not SolvedLengths.of([minus(product([a, b]), (1 << 61) - 1)]).solutions
    assert SolvedLengths.of([minus(product([a, b]), 1 << 20)]).solutions


def cached(path: Path, axis: int, *, wrong: bool = False) -> Path:
    """Attention on what was kept and what is new, under a mask of both lengths together."""
    dims: list[int | str] = ["batch", 4, 4] if axis == 1 else [4, "batch", 4]
    new: list[int | str] = list(dims)
    dims[axis], new[axis] = "past", "new"
    nodes = [
        node("Concat", ["kept", "x"], ["all"], axis=axis),
        node("Transpose", ["all"], ["t"], perm=[0, 2, 1] if axis == 1 else [1, 2, 0]),
        node("Transpose", ["x"], ["q"], perm=[0, 1, 2] if axis == 1 else [1, 0, 2]),
        node("MatMul", ["q", "t"], ["s"]),
        node("Unsqueeze", ["mask", "one"], ["m"]),
        node("Add", ["s", "m"], ["u"]),
        node("Softmax", ["u"], ["y"], axis=1 if wrong else 2),
    ]
    inputs = [tensor("kept", dims), tensor("x", new), tensor("mask", ("batch", "total"))]
    return save(path, nodes, inputs, [tensor("y", None)], [constant("one", [1], np.int64)])


@pytest.mark.parametrize("axis", [1, 0])
def test_a_total_of_past_and_new_is_found(tmp_path: Path, axis: int) -> None:
    path = cached(tmp_path / "a.onnx", axis)
    verdict = compare(path, path)
    assert verdict.exact
    assert len(verdict.bindings) >= 3
    assert all(b["total"] == b["past"] + b["new"] for b in verdict.bindings)
    assert verdict.bindings[0]["past"] != verdict.bindings[0]["new"]
    wrong = cached(tmp_path / "b.onnx", axis, wrong=True)
    assert compare(path, wrong).status == "differs"


def test_lengths_follow_from_arithmetic_on_shapes(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["n"]),
        node("Mul", ["n", "two"], ["twice"]),
        node("Add", ["twice", "one"], ["more"]),
        node("Concat", ["first", "more"], ["form"], axis=0),
        node("ConstantOfShape", ["form"], ["zeros"]),
        node("Add", ["zeros", "z"], ["y"]),
    ]
    constants = [
        constant("one", [1], np.int64),
        constant("two", [2], np.int64),
        constant("first", [3], np.int64),
    ]
    inputs = [tensor("x", ("B", "N")), tensor("z", (3, "M"))]
    path = save(tmp_path / "a.onnx", nodes, inputs, [tensor("y", None)], constants)
    verdict = compare(path, path)
    assert verdict.exact
    assert all(b["M"] == 2 * b["N"] + 1 for b in verdict.bindings)


def test_parameters_have_the_length_of_the_channels(tmp_path: Path) -> None:
    """A variance must not be negative, and all parameters have one length."""
    names = ["scale", "bias", "mean", "var"]
    made = node("BatchNormalization", ["x", *names], ["y"])
    inputs = [tensor("x", ("N", "C", 5)), *(tensor(name, (f"C_{name}",)) for name in names)]
    path = save(tmp_path / "a.onnx", [made], inputs, [tensor("y", None)])
    verdict = compare(path, path)
    assert verdict.exact
    assert all(len({b["C"], *(b[f"C_{n}"] for n in names)}) == 1 for b in verdict.bindings)
    other = node("BatchNormalization", ["x", *names], ["y"], epsilon=1e-2)
    wrong = save(tmp_path / "b.onnx", [other], inputs, [tensor("y", None)])
    assert compare(path, wrong).status == "differs"


def test_a_shape_that_is_an_input_fits(tmp_path: Path) -> None:
    for count in (1, 2, 3, 4):
        made = node("Reshape", ["x", "form"], ["y"])
        inputs = [tensor("x", (2, 3, 4)), tensor("form", (count,), INT64)]
        path = save(tmp_path / "a.onnx", [made], inputs, [tensor("y", None)])
        assert compare(path, path).exact, count


@pytest.mark.parametrize("op_type", ["Gather", "GatherElements", "ScatterElements"])
def test_indices_stay_in_the_data(tmp_path: Path, op_type: str) -> None:
    """They are reached through other operators, along another axis than the first."""
    nodes = [node("Cast", ["i"], ["j"], to=INT64), node("Transpose", ["j"], ["k"], perm=[1, 0])]
    more = ["k", "k2"] if op_type == "ScatterElements" else ["k"]
    if op_type == "ScatterElements":
        nodes.append(node("Cast", ["k"], ["k2"], to=1))
    nodes.append(node(op_type, ["x", *more], ["y"], axis=1))
    inputs = [tensor("x", (4, 3)), tensor("i", (2, 4), 6)]
    if op_type == "ScatterElements":
        # An element that is written twice is whichever comes last.
        nodes[-1].attribute.append(helper.make_attribute("reduction", "add"))
    path = save(tmp_path / "a.onnx", nodes, inputs, [tensor("y", None)], opset=18)
    assert compare(path, path).exact


def test_a_count_is_at_least_one_and_at_most_all(tmp_path: Path) -> None:
    made = node("TopK", ["x", "k"], ["v", "i"], axis=1)
    inputs = [tensor("x", ("N", 3)), tensor("k", (1,), INT64)]
    outputs = [tensor("v", None), tensor("i", None, INT64)]
    path = save(tmp_path / "a.onnx", [made], inputs, outputs)
    assert compare(path, path).exact


def test_regions_lie_in_images_that_there_are(tmp_path: Path) -> None:
    """Whether a region names its image by a float or an index, and through a cast."""
    pooled = node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[2, 2])
    inputs = [tensor("x", (2, 3, 8, 8)), tensor("r", ("R", 5))]
    path = save(tmp_path / "a.onnx", [pooled], inputs, [tensor("y", None)])
    assert compare(path, path).exact
    nodes = [
        node("Cast", ["i"], ["j"], to=INT64),
        node("RoiAlign", ["x", "r", "j"], ["y"], output_height=2, output_width=2),
    ]
    inputs = [tensor("x", (2, 3, 8, 8)), tensor("r", ("R", 4)), tensor("i", ("R",))]
    path = save(tmp_path / "b.onnx", nodes, inputs, [tensor("y", None)])
    assert compare(path, path).exact


def test_overlaps_of_boxes_are_shares(tmp_path: Path) -> None:
    """A runtime refuses thresholds above 1, and those that are fed may be drawn as anything."""
    made = node("NonMaxSuppression", ["b", "s", "m", "o"], ["y"])
    shapes = {"b": (1, 6, 4), "s": (1, 2, 6), "m": (1,), "o": (1,)}
    inputs = [tensor(name, shape, INT64 if name == "m" else 1) for name, shape in shapes.items()]
    path = save(tmp_path / "a.onnx", [made], inputs, [tensor("y", None, INT64)])
    assert compare(path, path).exact


@pytest.mark.parametrize("shape", [(2, 0, 4), (2, 3, 4)])
def test_axes_that_are_given_are_axes_of_what_is_reduced(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    """Of a tensor without elements ONNX Runtime reduces along axes that there are none of."""
    inputs = [tensor("x", shape), tensor("axes", ("n",), INT64)]
    outputs = [tensor("y", None)]
    before = [node("ReduceSum", ["x", "axes"], ["r"]), node("Transpose", ["r"], ["y"])]
    after = [
        node("Transpose", ["x"], ["t"]),
        node("Gather", ["order", "axes"], ["turned"]),
        node("ReduceSum", ["t", "turned"], ["y"]),
    ]
    order = constant("order", [2, 1, 0], np.int64)
    given = save(tmp_path / "a.onnx", before, inputs, outputs)
    other = save(tmp_path / "b.onnx", after, inputs, outputs, [order])
    assert compare(given, other).status != "differs"
