"""Where onnx's inference mistakes a shape, what is delivered passes its checker all the same."""

from __future__ import annotations

import onnx
import pytest

import relayout
from tests.rewrite.rewriting import parse

SPECTRUM = """
g (float[2,64,1] x) => (float[n,m,k,4] y)
<int64 step = {{8}}, int64 length = {{16}}>
{{ s = STFT{sides}(x, step, , length)
  a = Transpose<perm=[2,1,0,3]>(s)
  b = Abs(a)
  c = Transpose<perm=[2,1,0,3]>(b)
  y = Concat<axis=-1>(s, c)
  }}
"""

SQUEEZED = """<ir_version: 8, opset_import: ["" : 10]>
g (float[1,2,3,1] x) => (float[n,m] y)
{ s = Squeeze<axes=[3,0]>(x)
  a = Transpose<perm=[1,0]>(s)
  b = Abs(a)
  c = Transpose<perm=[1,0]>(b)
  y = Concat<axis=-1>(s, c)
  }
"""

ALONE = "<int64 step = {8}, int64 length = {16}> { y = STFT(x, step, , length) }"


@pytest.mark.parametrize(
    "given",
    [
        SPECTRUM.format(sides=""),
        SPECTRUM.format(sides="<onesided=0>"),
        SPECTRUM.format(sides="<onesided=1>"),
        SQUEEZED,
    ],
    ids=["by default", "two sides", "one side", "axes in no order"],
)
def test_the_checker_takes_what_is_delivered(given: str) -> None:
    model = parse(given)
    result = relayout.optimize(model)
    assert result.accepted
    assert "Transpose" not in {node.op_type for node in result.model.graph.node}
    onnx.checker.check_model(result.model, full_check=True)


def test_a_model_that_stays_keeps_its_bytes() -> None:
    model = parse("g (float[2,64,1] x) => (float[n,m,k,2] y) " + ALONE)
    assert relayout.optimize(model).model.SerializeToString() == model.SerializeToString()
