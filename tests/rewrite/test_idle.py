"""Paddings of no elements and parts that are the whole go; all others stay."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from relayout.rewrite.idle import DropIdle
from relayout.rewrite.worklist import rewrite_model
from tests.rewrite.rewriting import assert_same_numbers, parse, to_ir

MODEL = """
g (float[2,3] x) => (float[{shape}] y)
<int64[4] p = {{{pads}}}>
{{ a = Relu(x)
  b = Pad(a, p)
  y = Neg(b) }}
"""


@pytest.mark.parametrize(
    ("pads", "shape", "operators"),
    [
        ("0,0,0,0", "2,3", ["Relu", "Neg"]),
        ("0,1,0,0", "2,4", ["Relu", "Pad", "Neg"]),
    ],
)
def test_only_empty_paddings_go(pads: str, shape: str, operators: list[str]) -> None:
    given = parse(MODEL.format(pads=pads, shape=shape))
    model = to_ir(given)
    rewrite_model(model, [DropIdle()])
    result = ir.to_proto(model)
    assert [node.op_type for node in result.graph.node] == operators
    assert_same_numbers(given, result, exact=True)


def test_a_padding_known_at_run_time_stays() -> None:
    model = to_ir(parse("g (float[2,3] x, int64[4] p) => (float[a,b] y) { y = Pad(x, p) }"))
    assert not rewrite_model(model, [DropIdle()])


def test_an_output_keeps_its_name() -> None:
    text = (
        "g (float[2,3] x) => (float[2,3] y) <int64[4] p = {0,0,0,0}> { a = Relu(x) y = Pad(a, p) }"
    )
    given = parse(text)
    model = to_ir(given)
    rewrite_model(model, [DropIdle()])
    result = ir.to_proto(model)
    assert [value.name for value in result.graph.output] == ["y"]
    assert_same_numbers(given, result, exact=True)


@pytest.mark.parametrize(
    ("made", "shape", "is_idle"),
    [
        ("Slice(a, zero, long, one, one)", "2,3", True),
        ("Slice(a, zero, long)", "2,3", True),
        ("Slice(a, one, long, one)", "2,2", False),
        ("Slice(a, last, before, one, last)", "2,3", False),
        ("Expand(a, both)", "2,3", True),
        ("Expand(a, three)", "1,2,3", False),
        ("Tile(a, ones)", "2,3", True),
        ("Tile(a, twos)", "4,6", False),
        ("Concat<axis = 0>(a)", "2,3", True),
        ("Concat<axis = 0>(a, a)", "4,3", False),
    ],
)
def test_parts_that_are_the_whole_go(made: str, shape: str, is_idle: bool) -> None:
    given = parse(
        f"""g (float[2,3] x) => (float[{shape}] y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] last = {{-1}},
         int64[1] long = {{9}}, int64[1] before = {{-9}}, int64[2] both = {{2,1}},
         int64[3] three = {{1,2,3}}, int64[2] ones = {{1,1}}, int64[2] twos = {{2,2}}>
        {{ a = Relu(x) b = {made} y = Neg(b) }}"""
    )
    model = to_ir(given)
    rewrite_model(model, [DropIdle()])
    result = ir.to_proto(model)
    assert (len(result.graph.node) == 2) == is_idle
    assert_same_numbers(given, result, exact=True)


@pytest.mark.parametrize(("axis", "is_idle"), [("one", True), ("zero", False)])
def test_parts_along_open_lengths_stay(axis: str, is_idle: bool) -> None:
    text = f"""g (float[N,3] x) => (float[M,3] y) <int64[1] zero = {{0}}, int64[1] three = {{3}},
    int64[1] one = {{1}}> {{ a = Relu(x) b = Slice(a, zero, three, {axis}) y = Neg(b) }}"""
    assert bool(rewrite_model(to_ir(parse(text)), [DropIdle()])) == is_idle
