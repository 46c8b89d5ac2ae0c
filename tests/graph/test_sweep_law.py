"""The law of lengths: what is known of a length that is computed is what a run gives."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from relayout.graph.io.load import load
from relayout.graph.read import Dim, Shape, shape_of
from relayout.layout.blocks import size_of
from relayout.rewrite.refine import refine_shapes

LENGTHS = {"a": 5, "b": 4}
TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[a,b,6] x) => (float[p,q] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},
 int64[1] last = {-1}, int64[1] all = {99}, int64 at = {0}, int64[2] few = {2, -1},
 int64[2] places = {-1, 0}, int64[3] ones = {1, 1, 1}, float[1] most = {100.0}> {
    s = Shape(x)
    BODY
    z = MADE
    y = Relu(z)
}"""
FILLED = "ConstantOfShape(t)"
PARTS = {
    "as it is": "t = Identity(s)",
    "from a place on": "t = Shape<start = 1>(x)",
    "up to a place": "t = Shape<start = -3, end = -1>(x)",
    "a part": "t = Slice(s, one, all)",
    "a part up to the last": "t = Slice(s, zero, last, zero, one)",
    "a part counted from the end": "t = Slice(s, last, all, zero)",
    "every second": "t = Slice(s, zero, all, zero, two)",
    "places": "t = Gather(s, places)",
    "one place of no axis": "g1 = Gather(s, at) t = Unsqueeze(g1, zero)",
    "put together": "u = Slice(s, zero, one) t = Concat<axis = 0>(u, two, u)",
    "products": "t = Mul(s, two)",
    "products of lengths": "u = Gather(s, zero) t = Mul(s, u)",
    "products of vectors": "t = Mul(s, s)",
    "quotients": "u = Mul(s, three) t = Div(u, three)",
    "quotients of lengths": "u = Gather(s, zero) v = Mul(s, u) t = Div(v, u)",
    "sums": "u = Add(s, s) t = Sub(u, s)",
    "sums with nothing": "t = Add(s, zero)",
    "differences": "u = Mul(s, three) t = Sub(u, s)",
    "other types": "c = Cast<to = 6>(s) t = Cast<to = 7>(c)",
    "the same chosen": "e = Equal(s, s) t = Where(e, s, ones)",
    "what is not below 0 chosen": "m = Sub(zero, one) e = Equal(s, m) t = Where(e, ones, s)",
    "numbers compared": "e = Equal(two, three) t = Where(e, ones, s)",
}
UNSURE = {
    "backwards": "n = Sub(zero, all) t = Slice(s, last, n, zero, last)",
    "a quotient with a remainder": "t = Div(s, two)",
    "lengths compared": "u = Gather(s, zero) e = Equal(s, u) t = Where(e, ones, s)",
    "sums of others": "u = Gather(s, zero) t = Add(s, u)",
    "the smaller": "c = Cast<to = 1>(s) m = Min(c, most) t = Cast<to = 7>(m)",
}
SHAPED = {
    "a target with a rest": ("u = Gather(s, zero) t = Concat<axis = 0>(u, last)", "Reshape(x, t)"),
    "a target that copies": ("t = Concat<axis = 0>(zero, last, two)", "Reshape(x, t)"),
    "a part cut at run time": ("t = Gather(s, zero)", "Slice(x, zero, t, zero)"),
    "two parts": ("t = Slice(s, zero, two)", "Slice(x, both, t, axes)"),
    "numbers from 0 on": ("u = Gather(s, at) r = Range(at, u, step)", "Cast<to = 1>(r)"),
    "as long as another": ("u = Slice(x, zero, one, two)", "Expand(u, s)"),
}
UNSURE_SHAPED = {
    "a target of a product": (
        "u = Slice(s, zero, two) v = ReduceProd(u, zero) t = Concat<axis = 0>(v, last)",
        "Reshape(x, t)",
    ),
    "a part of another length": ("t = Gather(s, one)", "Slice(x, zero, t, zero)"),
    "a part of at most so much": (
        "u = Gather(s, zero) c = Cast<to = 1>(u) m = Min(c, most) t = Cast<to = 7>(m)",
        "Slice(x, zero, t, zero)",
    ),
}


def _model(body: str, made: str) -> onnx.ModelProto:
    text = TEXT.replace("BODY", body).replace("MADE", made)
    held = "int64[2] both = {0, 0}, int64[2] axes = {0, 1}, int64 step = {1}, "
    return onnx.parser.parse_model(text.replace("<int64[1] zero", f"<{held} int64[1] zero"))


def _known(model: onnx.ModelProto) -> Shape | None:
    """What is known of the shape of z."""
    found = load(model).ir
    refine_shapes(found)
    return next(
        shape_of(value) for node in found.graph for value in node.outputs if value.name == "z"
    )


def _number(length: Dim) -> int | None:
    """What a length is where the open ones are known, None if it is none of them."""
    if length is None:
        return None
    size = size_of(length)
    values = [LENGTHS.get(name) for _, name in size.symbols]
    numbers = [value for value in values if value is not None]
    return size.number * prod(numbers) if len(numbers) == len(values) else None


def _true(model: onnx.ModelProto) -> list[int]:
    x = np.zeros((*LENGTHS.values(), 6), np.float32)
    (result,) = ReferenceEvaluator(model).run(None, {"x": x})
    return list(np.asarray(result).shape)


CASES = {name: (body, FILLED) for name, body in {**PARTS, **UNSURE}.items()}
CASES |= {**SHAPED, **UNSURE_SHAPED}


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_of_a_length_is_so(name: str) -> None:
    model = _model(*CASES[name])
    known, true = _known(model), _true(model)
    if known is not None:
        assert len(known) == len(true)
        pairs = zip(map(_number, known), true, strict=True)
        assert all(length in {None, number} for length, number in pairs), (known, true)


@pytest.mark.parametrize("name", [*PARTS, *SHAPED])
def test_a_length_is_known(name: str) -> None:
    model = _model(*CASES[name])
    known = _known(model)
    assert known is not None
    assert [_number(length) for length in known] == _true(model)
