"""Small networks, as floats and quantised by ONNX Runtime, and what is asked of their results."""

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

from relayout.api import Result, optimize
from relayout.optimizer.delivery import Comparing
from relayout.verify.isolated import compare_isolated
from relayout.verify.verdict import NumericOptions, NumericVerdict

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


def in_bytes(model: onnx.ModelProto, folder: Path) -> dict[str, int]:
    """How many nodes ONNX Runtime computes in bytes, by kind."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "joined.onnx")
    providers = ["CPUExecutionProvider"]
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    kinds = [node.op_type for node in onnx.load(folder / "joined.onnx").graph.node]
    return {kind: kinds.count(kind) for kind in ("QGemm", "QLinearConv", "QLinearMatMul")}


def statements(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def refusing(kind: str = "MatMul") -> Comparing:
    """Lets the numbers of every model with such a product differ, as rounding may make them."""

    def compared(before: Path, after: Path, options: NumericOptions) -> NumericVerdict:
        if kind in {node.op_type for node in onnx.load(after).graph.node}:
            return NumericVerdict("differs", "a step")
        return compare_isolated(before, after, options)

    return compared
