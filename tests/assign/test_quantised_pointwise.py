"""Convolutions with windows of one element, a quantised weight and a bias become products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relayout.api import optimize
from relayout.optimizer.optimize import ROUGH
from tests.assign.quantised_networks import (
    HEADER,
    TO_NCHW,
    TO_NHWC,
    Network,
    in_bytes,
    kinds,
    optimised,
    quantised,
    statements,
)

WEIGHTS: dict[str, tuple[int, ...]] = {
    "w1": (4, 1, 3, 3),
    "b1": (4,),
    "w2": (8, 4, 1, 1),
    "b2": (8,),
    "w3": (4, 8, 1, 1),
    "b3": (4,),
    "g": (4,),
    "h": (4,),
}
BLOCK = f"""g (float[1,4,8,8] x) => (float[1,8,8,4] y) {{
    c = Conv<pads=[1,1,1,1], group=4>(x, w1, b1)
    n = {TO_NHWC}(c)
    l = LayerNormalization(n, g, h)
    t = {TO_NCHW}(l)
    d = Conv(t, w2, b2)
    r = Relu(d)
    e = Conv(r, w3, b3)
    f = {TO_NHWC}(e)
    y = LayerNormalization(f, g, h)
}}"""


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
def test_a_block_keeps_as_many_transposes_as_in_floats(per_channel: bool, tmp_path: Path) -> None:
    """As products of matrices they are computed in bytes, like the convolutions they were."""
    model = Network(BLOCK, WEIGHTS).model()
    given = quantised(model, tmp_path, operators=False, per_channel=per_channel)
    result = optimize(given, minimize="count", einsum=False)
    assert result.accepted
    assert ROUGH not in result.record().notices
    assert (result.before.transposes, result.after.transposes) == (3, 1)
    assert optimised(model).after.transposes == 1
    assert kinds(result.model) == kinds(given)
    assert statements(result.model).count("MatMul") == 2
    assert sum(in_bytes(given, tmp_path).values()) == 3
    assert sum(in_bytes(result.model, tmp_path).values()) == 3


def test_lengths_known_only_at_run_time(tmp_path: Path) -> None:
    """No bias is joined to a product then, so that it becomes one only where Transposes count."""
    model = Network(BLOCK, WEIGHTS).model()
    given = quantised(model, tmp_path, operators=False, per_channel=True)
    for value in (*given.graph.input, *given.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del given.graph.value_info[:]
    stays = optimize(given, minimize="count", einsum=False)
    assert "MatMul" not in statements(stays.model)
    result = optimize(given, minimize="count")
    assert result.accepted
    assert result.after.transposes == 1
    assert any("compute them in floats" in note for note in result.record().notices)


def convolution(stored: str, given: str, order: str) -> onnx.ModelProto:
    """A convolution between Transposes, on multiples of 0.1, of which its sums may be rounded."""
    text = f"""g (float[{stored}] x) => (float[{given}] y)
        <float s = {{0.1}}, uint8 z = {{128}}, float one = {{1}}, int8 n = {{0}},
         float t = {{0.2}}, int32[8] b = {{1, 2, 3, 4, 5, 6, 7, 8}}, int32 o = {{0}}> {{
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        i = Transpose<perm={order}>(d)
        v = DequantizeLinear(w, one, n)
        a = DequantizeLinear(b, s, o)
        c = Conv(i, v, a)
        k = Transpose<perm={order}>(c)
        r = QuantizeLinear(k, t, z)
        y = DequantizeLinear(r, t, z)
    }}"""
    model = onnx.parser.parse_model(HEADER.format(opset=17) + text)
    weight = np.random.default_rng(0).integers(-3, 4, (8, 64, 1, 1)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


@pytest.mark.parametrize(
    ("stored", "given", "order"),
    [("2,13,64,5", "2,13,8,5", "[0,2,1,3]"), ("2,5,13,64", "2,5,13,8", "[0,3,2,1]")],
    ids=["channels second to last", "channels last"],
)
def test_the_numbers_are_those_of_the_convolution(stored: str, given: str, order: str) -> None:
    """Where sums are added in another order, the difference is found to be one of rounding."""
    result = optimize(convolution(stored, given, order), minimize="count")
    assert result.accepted
    assert result.after.transposes == 0
    assert ROUGH not in result.record().notices
