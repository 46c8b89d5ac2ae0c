"""A quantised network keeps at most as many Transposes as the same network in floats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from relayout import delivery
from relayout.api import ROUGH, Result, check_certificate, optimize
from relayout.verify.verdict import NumericVerdict

quantization = pytest.importorskip("onnxruntime.quantization")

HEADER = '<ir_version: 10, opset_import: ["" : {opset}]>\n'
TO_NCHW = "Transpose<perm=[0,3,1,2]>"
TO_NHWC = "Transpose<perm=[0,2,3,1]>"


@dataclass(frozen=True, slots=True)
class Network:
    """A network in ONNX text; weights are named with their shapes and filled in."""

    text: str
    weights: dict[str, tuple[int, ...]]
    opset: int = 17

    def model(self) -> onnx.ModelProto:
        model = onnx.parser.parse_model(HEADER.format(opset=self.opset) + self.text)
        random = np.random.default_rng(0)
        for name, shape in self.weights.items():
            array = random.standard_normal(shape).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(array, name))
        return model


CONVOLUTIONS = Network(
    f"""g (float[1,8,8,3] x) => (float[1,8,8,4] y) {{
        t = {TO_NCHW}(x)
        c = Conv<pads=[1,1,1,1]>(t, w1, b1)
        r = Relu(c)
        n = {TO_NHWC}(r)
        u = {TO_NCHW}(n)
        d = Conv<pads=[1,1,1,1]>(u, w2, b2)
        y = {TO_NHWC}(d)
    }}""",
    {"w1": (4, 3, 3, 3), "b1": (4,), "w2": (4, 4, 3, 3), "b2": (4,)},
)
RESIDUAL = Network(
    f"""g (float[1,8,8,4] x) => (float[1,8,8,4] y) {{
        t = {TO_NCHW}(x)
        c = Conv<pads=[1,1,1,1]>(t, w1, b1)
        n = {TO_NHWC}(c)
        s = Add(n, x)
        r = Relu(s)
        u = {TO_NCHW}(r)
        d = Conv<pads=[1,1,1,1]>(u, w2, b2)
        m = {TO_NHWC}(d)
        y = Add(m, r)
    }}""",
    {"w1": (4, 4, 3, 3), "b1": (4,), "w2": (4, 4, 3, 3), "b2": (4,)},
)
DEPTHWISE = Network(
    f"""g (float[1,8,8,4] x) => (float[1,8,8,8] y) {{
        t = {TO_NCHW}(x)
        c = Conv<pads=[1,1,1,1], group=4>(t, w1, b1)
        n = {TO_NHWC}(c)
        r = Clip(n)
        u = {TO_NCHW}(r)
        d = Conv(u, w2, b2)
        y = {TO_NHWC}(d)
    }}""",
    {"w1": (4, 1, 3, 3), "b1": (4,), "w2": (8, 4, 1, 1), "b2": (8,)},
)
HEAD = Network(
    f"""g (float[1,8,8,3] x) => (float[1,5] y) <int64[2] flat = {{1, -1}}> {{
        t = {TO_NCHW}(x)
        c = Conv<strides=[2,2]>(t, w1, b1)
        n = {TO_NHWC}(c)
        m = Relu(n)
        f = Reshape(m, flat)
        y = Gemm(f, w2, b2)
    }}""",
    {"w1": (4, 3, 3, 3), "b1": (4,), "w2": (36, 5), "b2": (5,)},
)
ATTENTION = Network(
    """g (float[1,6,8] x) => (float[1,6,8] y)
        <int64[4] split = {1, 6, 2, 4}, int64[3] merged = {1, 6, 8}> {
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        v = MatMul(x, wv)
        q4 = Reshape(q, split)
        k4 = Reshape(k, split)
        v4 = Reshape(v, split)
        qt = Transpose<perm=[0,2,1,3]>(q4)
        kt = Transpose<perm=[0,2,3,1]>(k4)
        vt = Transpose<perm=[0,2,1,3]>(v4)
        s = MatMul(qt, kt)
        p = Softmax<axis=3>(s)
        o = MatMul(p, vt)
        ot = Transpose<perm=[0,2,1,3]>(o)
        m = Reshape(ot, merged)
        y = MatMul(m, wo)
    }""",
    {"wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "wo": (8, 8)},
)


def boxes(batch: str) -> Network:
    """The mean of a distribution for each of the four sides of a box."""
    return Network(
        f"""g (float[{batch},32,6] x) => (float[{batch},4,6] y)
            <int64[4] split = {{0, 4, 8, 6}}, int64[3] merged = {{0, 4, 6}}> {{
            r = Reshape(x, split)
            t = Transpose<perm=[0,2,1,3]>(r)
            p = Softmax<axis=1>(t)
            c = Conv(p, w)
            y = Reshape(c, merged)
        }}""",
        {"w": (1, 8, 1, 1)},
    )


NETWORKS = {
    "convolutions": CONVOLUTIONS,
    "residual": RESIDUAL,
    "depthwise": DEPTHWISE,
    "head": HEAD,
    "attention": ATTENTION,
    "boxes": boxes("2"),
    "boxes of any batch": boxes("N"),
}


class Samples:
    """A few inputs by which the quantiser chooses its scales."""

    def __init__(self, model: onnx.ModelProto) -> None:
        (value,) = model.graph.input
        shape = [dim.dim_value or 3 for dim in value.type.tensor_type.shape.dim]
        random = np.random.default_rng(1)
        data = (random.standard_normal(shape).astype(np.float32) for _ in range(3))
        self.batches: Iterator[dict[str, Any]] = ({value.name: array} for array in data)

    def get_next(self) -> dict[str, Any] | None:
        return next(self.batches, None)


def quantised(
    model: onnx.ModelProto, folder: Path, *, operators: bool, per_channel: bool, signed: bool = True
) -> onnx.ModelProto:
    onnx.save(model, folder / "float.onnx")
    formats, types = quantization.QuantFormat, quantization.QuantType
    quantization.quantize_static(
        folder / "float.onnx",
        folder / "quantised.onnx",
        Samples(model),
        quant_format=formats.QOperator if operators else formats.QDQ,
        per_channel=per_channel,
        activation_type=types.QUInt8,
        weight_type=types.QInt8 if signed else types.QUInt8,
    )
    return onnx.load(folder / "quantised.onnx")


def optimised(model: onnx.ModelProto, *, einsum: bool = False) -> Result:
    """The result by operators that both kinds of networks may be stated with."""
    return optimize(model, minimize="count", einsum=einsum, verify=False)


def outputs(model: onnx.ModelProto) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [session.run(None, batch)[0] for batch in Samples(model).batches]


def kinds(model: onnx.ModelProto) -> list[str]:
    return sorted(node.op_type for node in model.graph.node if "Quantize" in node.op_type)


FORMS = pytest.mark.parametrize(
    ("operators", "per_channel"),
    [
        pytest.param(False, False, id="QDQ, per tensor"),
        pytest.param(False, True, id="QDQ, per channel"),
        pytest.param(True, False, id="QOperator, per tensor"),
        pytest.param(True, True, id="QOperator, per channel"),
    ],
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


def in_bytes(model: onnx.ModelProto, folder: Path) -> dict[str, int]:
    """How many nodes ONNX Runtime computes in bytes, by kind."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "joined.onnx")
    providers = ["CPUExecutionProvider"]
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    kinds = [node.op_type for node in onnx.load(folder / "joined.onnx").graph.node]
    return {kind: kinds.count(kind) for kind in ("QGemm", "QLinearConv", "QLinearMatMul")}


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


def test_runtimes_look_for_quantisers_behind_moves(tmp_path: Path) -> None:
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


def statements(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


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


def refuse_products(monkeypatch: pytest.MonkeyPatch, kind: str = "MatMul") -> None:
    """Let the numbers of every model with such a product differ, as rounding may make them."""

    def compared(given: Any, file: Any, *rest: Any) -> NumericVerdict:
        kinds_written = {node.op_type for node in onnx.load(file.path).graph.node}
        if kind in kinds_written:
            return NumericVerdict("differs", "a step")
        return whole(given, file, *rest)

    whole = delivery.compared
    monkeypatch.setattr(delivery, "compared", compared)


def test_sums_stay_as_they_are_where_rounding_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A convolution between Transposes keeps them, and what else there is to save is saved."""
    refuse_products(monkeypatch)
    text = POINTWISE.replace(
        "q = QuantizeLinear(x, s, z)",
        """a = Transpose<perm=[0,2,1,3]>(x)
        e = Relu(a)
        f = Transpose<perm=[0,2,1,3]>(e)
        q = QuantizeLinear(f, s, z)""",
    )
    given = onnx.parser.parse_model(HEADER.format(opset=21) + text)
    result = optimize(given, minimize="count")
    assert result.accepted
    assert (result.before.transposes, result.after.transposes) == (4, 2)
    assert ROUGH in result.record().notices
    assert check_certificate(result.certificate(), given) == []


def test_floats_that_differ_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_products(monkeypatch)
    text = f"""g (float[2,3,3,4] x) => (float[2,3,3,2] y)
        <float[2,4,1,1] w = {{1,-2,3,-4,5,-6,7,-8}}> {{
        t = {TO_NCHW}(x)
        c = Conv(t, w)
        y = {TO_NHWC}(c)
    }}"""
    assert not optimize(onnx.parser.parse_model(HEADER.format(opset=21) + text)).accepted


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
