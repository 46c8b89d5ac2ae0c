"""What a result opens is taken up: a second run over any result finds nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relayout.api import check_certificate, optimize
from tests.rewrite.rewriting import parse
from tests.suites.random_graphs import random_graph
from tests.suites.test_random_graphs import assert_same_numbers

OPENED = {
    "Reshapes have met beside an Einsum": (1694, "onnx", "count"),
    "candidates that were left out come into reach": (476, "onnx", "bytes"),
    "another order before axes of length 1": (1208, "ort", "bytes"),
    "axes can be split once Reshapes have met": (1154, "nhwc", "count"),
    "a shape is known": (300, "onnx", "count"),
}
"""Random graphs, by seed, whose first result opens more."""


@pytest.mark.parametrize(
    ("seed", "target", "minimize"), OPENED.values(), ids=[name.replace(" ", "-") for name in OPENED]
)
def test_a_second_round_finds_more_and_a_second_run_nothing(
    seed: int, target: str, minimize: str
) -> None:
    graph = random_graph(seed)
    result = optimize(graph.model, target=target, minimize=minimize, verify=False)
    kept = [record for record in result.attempts if record.verdict == "kept"]
    assert [record.attempt.startswith("round") for record in kept] == [False, True]
    first, last = kept
    assert last.transposes <= first.transposes
    assert (last.transposes, last.bytes_moved) < (first.transposes, first.bytes_moved)
    assert (last.transposes, last.bytes_moved) == (
        result.after.transposes,
        result.after.bytes_moved,
    )
    assert_same_numbers(graph, result.model)
    again = optimize(result.model, target=target, minimize=minimize, verify=False)
    assert not again.changed
    assert again.model == result.model


def test_the_certificate_is_about_the_last_round_and_lists_those_before() -> None:
    given = random_graph(1694).model
    result = optimize(given, minimize="count", verify=False)
    document = result.certificate()
    (first,) = document["earlier"]
    assert first["model"] == document["given"]["sha256"]
    assert document["model"] not in {first["model"], document["written"]["sha256"]}
    assert check_certificate(document, given, result.model) == []


@pytest.mark.parametrize("part", ["first", "last"])
def test_every_round_of_a_certificate_is_checked(part: str) -> None:
    document = optimize(random_graph(1694).model, minimize="count", verify=False).certificate()
    one = document["earlier"][0] if part == "first" else document
    one["graphs"][0]["bound"] += 1
    assert check_certificate(document) != []


def test_where_nothing_is_opened_there_is_one_round() -> None:
    """Transposes that only dissolve leave the same problem, whose best choice is known."""
    given = parse("""g (float[2,5,6,3] x, float[4,3,2,2] v, float[3,4,2,2] w)
      => (float[2,3,4,3] y) {
      a = Transpose<perm=[0,3,1,2]>(x) b = Conv(a, v) c = Transpose<perm=[0,2,3,1]>(b)
      d = Relu(c) e = Transpose<perm=[0,3,1,2]>(d) f = Conv(e, w)
      y = Transpose<perm=[0,2,3,1]>(f) }""")
    result = optimize(given, verify=False)
    assert (result.before.transposes, result.after.transposes) == (4, 2)
    assert not any(record.attempt.startswith("round") for record in result.attempts)
    assert len(result.rounds) == 1


def test_a_transpose_counts_alike_wherever_its_shape_is_declared() -> None:
    """An output with symbols of its own does not make the same Transpose a gain."""
    given = parse("g (float[A,2,C] x) => (float[O,P,Q] y) { y = Transpose<perm=[2,0,1]>(x) }")
    result = optimize(given, verify=False)
    assert not result.changed
    assert result.before.bytes_moved == result.after.bytes_moved == 2 * 4 * 32 * 2 * 32


@pytest.mark.parametrize("declared", ["2,2,2,2", "O,P,Q,R"])
def test_no_figure_grows_however_outputs_are_declared(declared: str) -> None:
    given = parse(f"""g (float[2,4] a, float[2,4] b, float[4,2000] c, float[2,2,2,2] z)
      => (float[4,2004] y, float[2004,4] t, float[{declared}] u) {{
      d = Transpose<perm=[1,0]>(a) e = Transpose<perm=[1,0]>(b)
      y = Concat<axis=1>(d, e, c) t = Transpose<perm=[1,0]>(y)
      u = Transpose<perm=[0,2,3,1]>(z) }}""")
    result = optimize(given, minimize="count", verify=False)
    assert not result.changed


def test_copies_are_priced_by_the_numbers_that_transposes_are_measured_by() -> None:
    """That there is one image only the output claims, which no figure is made of."""
    given = parse("""g (float[N,16,M,K] x, int64[4] ends) => (float[1,H,W,C] y) {
      a = Transpose<perm=[0,2,3,1]>(x) b = Transpose<perm=[0,3,1,2]>(a)
      starts = Constant<value_ints=[0,0,0,0]>() axes = Constant<value_ints=[0,1,2,3]>()
      c = Slice(b, starts, ends, axes) y = Transpose<perm=[0,2,3,1]>(c) }""")
    result = optimize(given, verify=False)
    assert (result.after.transposes, result.after.bytes_moved) == (1, 2 * 4 * 32 * 16 * 32 * 32)
    assert not optimize(result.model, verify=False).changed


def _head(read: str, channels: int, written: int, name: str) -> tuple[str, str]:
    """A pointwise convolution with a bias whose result is stored channels last; its constants."""
    weights = ",".join(str(number % 7) for number in range(channels * written))
    biases = ",".join(map(str, range(written)))
    constants = (
        f"float[{written},{channels},1,1] w{name} = {{{weights}}}, "
        f"float[{written}] b{name} = {{{biases}}}"
    )
    nodes = f"""c{name} = Conv({read}, w{name}, b{name})
      t{name} = Transpose<perm=[0,2,3,1]>(c{name}) {name} = Reshape(t{name}, flat)"""
    return nodes, constants


def test_fewer_transposes_are_found_where_the_fewest_would_move_more() -> None:
    """Two heads share one copy where their features are fewer than their results, else not."""
    heads = [_head("f", 8, 7, "p"), _head("f", 8, 2, "q"), _head("g", 9, 2, "r")]
    heads.append(_head("g", 9, 3, "s"))
    given = parse(f"""g (float[1,8,4,4] x, float[1,9,4,4] z, float[8,8,3,3] v, float[9,9,3,3] w)
      => (float[N,P] p, float[N,Q] q, float[N,R] r, float[N,S] s)
      <int64[2] flat = {{1, -1}}, {", ".join(constants for _, constants in heads)}> {{
      f = Conv<pads=[1,1,1,1]>(x, v) g = Conv<pads=[1,1,1,1]>(z, w)
      {" ".join(nodes for nodes, _ in heads)} }}""")
    result = optimize(given, minimize="count")
    assert result.attempts[0].transposes == 2
    assert (result.before.transposes, result.after.transposes) == (4, 3)
    assert result.after.bytes_moved < result.before.bytes_moved
    assert result.accepted
    assert not optimize(result.model, minimize="count", verify=False).changed


def test_a_result_that_was_looked_at_again_is_explained_from_that() -> None:
    """By another copy of the model, so the records, not the nodes, are compared."""
    results = [optimize(random_graph(seed).model, verify=False) for seed in range(12)]
    looked_at = [result for result in results if result.stated and result.after.transposes]
    assert looked_at
    for result in looked_at:
        left = result.record().left
        assert len(left) == result.after.transposes
        assert left == replace(result, stated=None).record().left


def test_by_other_terms_than_those_of_reports_a_result_is_explained_anew() -> None:
    results = [optimize(random_graph(s).model, minimize="count", verify=False) for s in range(12)]
    assert any(result.changed for result in results)
    assert not any(result.stated for result in results)
