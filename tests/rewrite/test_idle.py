"""Paddings of no elements go; all others stay."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from relayout.rewrite.idle import DropPad
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
    rewrite_model(model, [DropPad()])
    result = ir.to_proto(model)
    assert [node.op_type for node in result.graph.node] == operators
    assert_same_numbers(given, result, exact=True)


def test_a_padding_known_at_run_time_stays() -> None:
    model = to_ir(parse("g (float[2,3] x, int64[4] p) => (float[a,b] y) { y = Pad(x, p) }"))
    assert not rewrite_model(model, [DropPad()])


def test_an_output_keeps_its_name() -> None:
    text = (
        "g (float[2,3] x) => (float[2,3] y) <int64[4] p = {0,0,0,0}> { a = Relu(x) y = Pad(a, p) }"
    )
    given = parse(text)
    model = to_ir(given)
    rewrite_model(model, [DropPad()])
    result = ir.to_proto(model)
    assert [value.name for value in result.graph.output] == ["y"]
    assert_same_numbers(given, result, exact=True)
