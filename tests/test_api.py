"""What `optimize` promises whatever it is asked to save."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import onnx
import onnx_ir
import pytest

import relayout
from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.exact import solve
from relayout.assign.strategies.registry import Strategy
from tests.recount import recounted
from tests.rewrite.rewriting import parse

SMALL_PARTS_OF_A_LARGE_TENSOR = """
    g (float[64,64] x) => (float[2,64] a, float[2,64] b, float[2,64] c)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}>
    { t = Transpose<perm=[1,0]>(x)
      a = Slice(t, zero, two, zero) b = Slice(t, two, four, zero) c = Slice(t, four, six, zero) }"""


def test_fewer_bytes_never_take_more_transposes_than_given() -> None:
    """Three small copies would move a tenth of the bytes; the user asked for no more Transposes."""
    result = relayout.optimize(parse(SMALL_PARTS_OF_A_LARGE_TENSOR), minimize="bytes")
    assert result.after.transposes == 1
    assert result.after.bytes_moved == result.before.bytes_moved
    assert any("3 Transposes" in notice for notice in result.loaded.notices)


TRANSPOSED_PARTS_OF_A_LARGE_TENSOR = """
    g (float[64,64] x) => (float[64,2] a, float[64,2] b, float[64,2] c)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}>
    { p = Slice(x, zero, two, zero) q = Slice(x, two, four, zero) r = Slice(x, four, six, zero)
      a = Transpose<perm=[1,0]>(p) b = Transpose<perm=[1,0]>(q) c = Transpose<perm=[1,0]>(r) }"""


@pytest.mark.parametrize("minimize", ["bytes", "count"])
@pytest.mark.parametrize(
    "text", [SMALL_PARTS_OF_A_LARGE_TENSOR, TRANSPOSED_PARTS_OF_A_LARGE_TENSOR]
)
def test_neither_figure_grows(text: str, minimize: str) -> None:
    """One large copy would serve three small ones, or the other way round."""
    given = parse(text)
    before, after = recounted(given), recounted(relayout.optimize(given, minimize=minimize).model)
    assert after.transposes <= before.transposes
    assert after.bytes <= before.bytes


def test_the_figures_of_a_result_are_those_of_its_model() -> None:
    """Counted from the message by other code."""
    given = parse(TRANSPOSED_PARTS_OF_A_LARGE_TENSOR)
    result = relayout.optimize(given, minimize="bytes")
    for figures, model in ((result.before, given), (result.after, result.model)):
        assert recounted(model) == (figures.transposes, figures.bytes_moved)
    assert recounted(given) == (3, 3 * 2 * 2 * 64 * 4)


SHARED_BY_PRODUCTS = """
    g (float[64,64] x, float[3,64,64] p, float[3,64,64] q, float[3,64,64] k) =>
      (float[2,64] a, float[2,64] b, float[2,64] c, float[3,64,64] y, float[3,64,64] z)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}>
    { t = Transpose<perm=[1,0]>(x) u = Transpose<perm=[1,0]>(x) v = Transpose<perm=[1,0]>(x)
      a = Slice(t, zero, two, zero) b = Slice(u, two, four, zero) c = Slice(v, four, six, zero)
      w = Transpose<perm=[0,2,1]>(k) y = MatMul(p, w) z = MatMul(q, w) }"""


def test_products_that_would_copy_more_as_einsum_stay_products() -> None:
    """Both would copy what one Transpose does for them; of the rest the fewest still stay."""
    given = parse(SHARED_BY_PRODUCTS)
    result = relayout.optimize(given, minimize="count")
    after = recounted(result.model)
    assert "Einsum" not in {node.op_type for node in result.model.graph.node}
    assert after.transposes == 2
    assert after.bytes <= recounted(given).bytes
    assert any("no product was stated as Einsum" in notice for notice in result.loaded.notices)


def test_a_file_is_opened_once(tmp_path: Path) -> None:
    """Two attempts are made, and reported; both start from what was read at first."""
    given = tmp_path / "given.onnx"
    onnx.save(parse(SMALL_PARTS_OF_A_LARGE_TENSOR), given)
    opened: list[str] = []

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and watching and str(arguments[0]) == str(given):
            opened.append(event)

    watching = True
    sys.addaudithook(note)
    try:
        result = relayout.optimize(given, verify=False)
    finally:
        watching = False
    assert len(result.attempts) > 1
    assert len(opened) == 1


def test_attempts_are_reported_with_why_each_was_kept_or_dropped() -> None:
    result = relayout.optimize(parse(SHARED_BY_PRODUCTS), minimize="count", verify=False)
    verdicts = [record.verdict for record in result.attempts]
    assert verdicts.count("kept") == 1
    assert all(verdict == "kept" or verdict.startswith("dropped: ") for verdict in verdicts)
    first, kept = result.attempts[0], result.attempts[verdicts.index("kept")]
    assert "products as Einsum" in first.attempt
    assert "Einsum" not in kept.attempt
    assert kept.transposes == result.after.transposes
    assert result.record().to_json()["attempts"][0]["attempt"] == first.attempt


def test_a_model_that_is_given_as_a_value_is_not_edited() -> None:
    model = parse(SHARED_BY_PRODUCTS)
    given, loaded = model.SerializeToString(), onnx_ir.from_proto(model)
    relayout.optimize(model, verify=False)
    result = relayout.optimize(loaded, verify=False)
    assert result.changed
    assert model.SerializeToString() == given
    assert (
        onnx_ir.to_proto(loaded).graph.node
        == onnx_ir.to_proto(onnx_ir.from_proto(model)).graph.node
    )


def test_the_budget_is_that_of_all_attempts_together() -> None:
    asked: list[float] = []

    def slow(problem: LayoutProblem, seconds: float) -> Assignment:
        asked.append(seconds)
        time.sleep(0.02)
        return solve(problem, seconds)

    model = parse(SMALL_PARTS_OF_A_LARGE_TENSOR)
    relayout.optimize(model, strategy=Strategy("slow", slow), budget=1.0, verify=False)
    assert len(asked) > 1
    assert asked == sorted(asked, reverse=True)
    assert asked[0] - asked[-1] >= 0.02
