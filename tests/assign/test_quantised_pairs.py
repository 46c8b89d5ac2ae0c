"""A quantised network keeps at most as many Transposes as the same network in floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relayout.api import check_certificate, optimize
from relayout.optimizer.attempts import KEPT, ROUNDING_SHOWS
from relayout.optimizer.optimize import ROUGH
from tests.assign.quantised_networks import (
    ATTENTION,
    FORMS,
    HEADER,
    NETWORKS,
    TO_NCHW,
    TO_NHWC,
    Network,
    boxes,
    in_bytes,
    kinds,
    optimised,
    outputs,
    quantised,
    refusing,
)


@FORMS
@pytest.mark.parametrize("network", [name for name in NETWORKS if name != "attention"])
def test_no_more_transposes_than_in_floats(
    network: str, operators: bool, per_channel: bool, tmp_path: Path
) -> None:
    model = NETWORKS[network].model()
    given = quantised(model, tmp_path, operators=operators, per_channel=per_channel)
    assert_no_more(given, model)


@pytest.mark.parametrize("operators", [False, True], ids=["QDQ", "QOperator"])
def test_attention_with_unsigned_weights(operators: bool, tmp_path: Path) -> None:
    """Factors of one type and with one scale each change places as in floats."""
    model = ATTENTION.model()
    given = quantised(model, tmp_path, operators=operators, per_channel=False, signed=False)
    assert_no_more(given, model)


@FORMS
def test_attention_with_signed_weights_is_left(
    operators: bool, per_channel: bool, tmp_path: Path
) -> None:
    """ONNX Runtime multiplies unsigned by signed bytes, but not signed by unsigned ones."""
    given = quantised(ATTENTION.model(), tmp_path, operators=operators, per_channel=per_channel)
    assert optimised(given).after.transposes == 4


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize("network", NETWORKS)
def test_what_is_computed_in_bytes_stays_so(network: str, signed: bool, tmp_path: Path) -> None:
    model = NETWORKS[network].model()
    given = quantised(model, tmp_path, operators=False, per_channel=False, signed=signed)
    wanted = in_bytes(given, tmp_path)
    assert sum(wanted.values()) > 0
    assert in_bytes(optimised(given).model, tmp_path) == wanted


def test_a_bias_is_read_straight_from_its_quantiser(tmp_path: Path) -> None:
    """The result of a Gemm transposed is one of exchanged factors, with its bias in a column."""
    model = Network(
        """g (float[6,8] x) => (float[4,6] y)
        {
            m = Gemm(x, w, b)
            y = Transpose<perm=[1,0]>(m)
        }""",
        {"w": (8, 4), "b": (4,)},
    ).model()
    given = quantised(model, tmp_path, operators=False, per_channel=False, signed=False)
    wanted = in_bytes(given, tmp_path)
    assert wanted["QGemm"] == 1
    assert in_bytes(optimised(given).model, tmp_path) == wanted


def test_runtimes_look_through_moves_for_quantisers(tmp_path: Path) -> None:
    """Factors exchanged would save the Transpose, and leave a product of floats."""
    given = onnx.parser.parse_model(
        HEADER.format(opset=17)
        + """g (float[2,3,8] x) => (float[4,6] y)
        <float s = {0.1}, uint8 z = {128}, int8 n = {0}, int32[4] b = {1, 2, 3, 4},
         float t = {0.01}, int32 o = {0}, int64[2] rows = {6, 8}> {
            q = QuantizeLinear(x, s, z)
            d = DequantizeLinear(q, s, z)
            r = Reshape(d, rows)
            v = DequantizeLinear(w, s, n)
            a = DequantizeLinear(b, t, o)
            m = Gemm(r, v, a)
            p = Transpose<perm=[1,0]>(m)
            e = QuantizeLinear(p, s, z)
            y = DequantizeLinear(e, s, z)
        }"""
    )
    weight = np.random.default_rng(0).integers(-9, 9, (8, 4)).astype(np.int8)
    given.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    wanted = in_bytes(given, tmp_path)
    assert wanted["QGemm"] == 1
    assert in_bytes(optimize(given).model, tmp_path) == wanted


@pytest.mark.parametrize("network", ["convolutions", "residual", "depthwise"])
def test_convolutions_between_quantisers_run_channels_last_where_the_target_wants_it(
    network: str, tmp_path: Path
) -> None:
    model = NETWORKS[network].model()
    given = quantised(model, tmp_path, operators=False, per_channel=True)
    result = optimize(given, target="nhwc")
    assert result.accepted
    assert result.lacking[1] == 0
    assert result.after.transposes <= optimize(model, target="nhwc").after.transposes
    assert kinds(result.model) == kinds(given)


def assert_no_more(given: onnx.ModelProto, in_floats: onnx.ModelProto) -> None:
    """The optimised model has no more Transposes, and its numbers are the same to the bit."""
    result = optimised(given)
    assert result.after.transposes <= optimised(in_floats).after.transposes
    for one, other in zip(outputs(given), outputs(result.model), strict=True):
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("batch", ["2", "N"])
@FORMS
def test_a_convolution_takes_what_is_stored_before_its_channels_as_its_batch(
    batch: str, operators: bool, per_channel: bool, tmp_path: Path
) -> None:
    """Its bytes are reshaped, so that it stays beside its quantisers."""
    model = boxes(batch).model()
    given = quantised(model, tmp_path, operators=operators, per_channel=per_channel)
    result = optimised(given)
    assert result.after.transposes == 0
    reshapes = [node for node in result.model.graph.node if node.op_type == "Reshape"]
    makers = {name: node.op_type for node in result.model.graph.node for name in node.output}
    assert "Conv" not in {makers.get(node.input[0]) for node in reshapes}
    read = {name for node in reshapes for name in node.output}
    convs = [node for node in result.model.graph.node if node.op_type == "Conv"]
    assert read.isdisjoint(node.input[0] for node in convs)


@pytest.mark.parametrize("network", NETWORKS)
def test_quantisers_stay(network: str, tmp_path: Path) -> None:
    given = quantised(NETWORKS[network].model(), tmp_path, operators=False, per_channel=True)
    assert kinds(optimised(given).model) == kinds(given)


POINTWISE = f"""g (float[2,3,3,4] x) => (float[2,3,3,2] y)
    <int8[2,4,1,1] w = {{1,-2,3,-4,5,-6,7,-8}}, float[2] scale = {{0.5, 0.25}},
     int8[2] zero = {{0, 0}}, float s = {{0.5}}, uint8 z = {{3}}> {{
    q = QuantizeLinear(x, s, z)
    d = DequantizeLinear(q, s, z)
    t = {TO_NCHW}(d)
    v = DequantizeLinear<axis=0>(w, scale, zero)
    c = Conv(t, v)
    n = {TO_NHWC}(c)
    r = QuantizeLinear(n, s, z)
    y = DequantizeLinear(r, s, z)
}}"""


def test_a_quantised_weight_follows_a_convolution_that_becomes_a_product() -> None:
    given = onnx.parser.parse_model(HEADER.format(opset=21) + POINTWISE)
    result = optimised(given)
    assert result.after.transposes == 0
    assert kinds(result.model) == kinds(given)
    assert [node.op_type for node in result.model.graph.node].count("MatMul") == 1
    for one, other in zip(outputs(given), outputs(result.model), strict=True):
        np.testing.assert_array_equal(other, one)


def test_sums_stay_as_they_are_where_rounding_shows() -> None:
    """A convolution between Transposes keeps them, and what else there is to save is saved."""
    text = POINTWISE.replace(
        "q = QuantizeLinear(x, s, z)",
        """a = Transpose<perm=[0,2,1,3]>(x)
        e = Relu(a)
        f = Transpose<perm=[0,2,1,3]>(e)
        q = QuantizeLinear(f, s, z)""",
    )
    given = onnx.parser.parse_model(HEADER.format(opset=21) + text)
    result = optimize(given, minimize="count", comparing=refusing())
    assert result.accepted
    assert (result.before.transposes, result.after.transposes) == (4, 2)
    assert ROUGH in result.record().notices
    verdicts = [record.verdict for record in result.attempts]
    assert verdicts.count(ROUNDING_SHOWS) == 2
    assert verdicts.count(KEPT) == 1
    assert check_certificate(result.certificate(), given) == []


def test_floats_that_differ_are_not_tried_again() -> None:
    text = f"""g (float[2,3,3,4] x) => (float[2,3,3,2] y)
        <float[2,4,1,1] w = {{1,-2,3,-4,5,-6,7,-8}}> {{
        t = {TO_NCHW}(x)
        c = Conv(t, w)
        y = {TO_NHWC}(c)
    }}"""
    given = onnx.parser.parse_model(HEADER.format(opset=21) + text)
    assert not optimize(given, comparing=refusing()).accepted


def test_what_is_computed_in_floats_anyway_may_move() -> None:
    """Signed by unsigned bytes as given: no kernel is lost by storing them in another order."""
    given = onnx.parser.parse_model(
        HEADER.format(opset=17)
        + """g (float[5,2,4,3] x, float[5,2,3,6] z) => (float[5,2,4,6] y)
        <float s = {0.1}, int8 a = {0}, uint8 b = {128}> {
            t = Transpose<perm=[1,0,2,3]>(x)
            q = QuantizeLinear(t, s, a)
            p = DequantizeLinear(q, s, a)
            v = Transpose<perm=[1,0,2,3]>(z)
            r = QuantizeLinear(v, s, b)
            e = DequantizeLinear(r, s, b)
            m = MatMul(p, e)
            y = Transpose<perm=[1,0,2,3]>(m)
        }"""
    )
    for keep, left in (((), 0), (("op:MatMul",), 3)):
        result = optimize(given, keep=keep)
        assert result.accepted
        assert result.after.transposes == left
