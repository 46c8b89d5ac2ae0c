"""Graphs that layout passes elsewhere got wrong, by the number and name of what went wrong.

Lengths are named A, B, C, D in the texts: distinct primes, all equal, and some of them 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

Array = np.ndarray[Any, Any]
REGIMES = {"primes": (2, 3, 5, 7), "equal": (4, 4, 4, 4), "ones": (1, 3, 1, 4)}


@dataclass(frozen=True)
class HardCase:
    """One row: a body that computes y (and z) of inputs, and what is known of the result."""

    row: int
    name: str
    inputs: str
    body: str
    constants: Mapping[str, Array] = field(default_factory=dict)
    """Those whose shapes do not depend on the regime."""
    drawn: Mapping[str, str] = field(default_factory=dict)
    """Constants of small whole numbers, with shapes in letters."""
    outputs: str = "float y"
    left: int | None = None
    """The most Transposes that may be left; None: no more than given."""
    opset: int = 18
    target: str = "onnx"
    objective: str = "bytes"
    regimes: Sequence[str] = ("primes", "equal", "ones")
    value_info: str = ""
    overridable: bool = False
    """Whether constants are listed among the inputs, so that a caller may replace them."""

    @property
    def id(self) -> str:
        return f"{self.row:02}-{self.name}"

    def model(self, regime: str, *, is_open: bool = False) -> onnx.ModelProto:
        lengths = REGIMES[regime]
        letters = dict(zip("ABCD", lengths, strict=True))
        head = f'<ir_version: 9, opset_import: ["": {self.opset}, "com.microsoft": 1]>'
        text = f"{head} g ({self.inputs}) => ({self.outputs}) {{ {self.body} }}"
        for letter, length in letters.items():
            text = text.replace(f"{{{letter}}}", str(length))
        model = parser.parse_model(text)
        held = {**self.constants, **{n: small(*_shape(s, letters)) for n, s in self.drawn.items()}}
        model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in held.items())
        if self.overridable:
            model.graph.input.extend(
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                for n, a in held.items()
            )
        if is_open:
            _open(model)
        return model


def _shape(text: str, letters: Mapping[str, int]) -> list[int]:
    return [letters.get(part, 0) or int(part) for part in text.split(",")] if text else []


def _open(model: onnx.ModelProto) -> None:
    """Lengths of inputs get names; different axes different ones, whatever their lengths."""
    for port in model.graph.input:
        for axis, dim in enumerate(port.type.tensor_type.shape.dim):
            if dim.dim_value:
                dim.dim_param = f"{port.name}_{axis}"


def small(*shape: int, low: int = -2, high: int = 3) -> Array:
    drawn = np.random.default_rng(int(np.prod(shape)) + 7)
    return drawn.integers(low, high, shape).astype(np.float32)


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def feeds_of(model: onnx.ModelProto, lengths: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    """Distinct whole numbers for each input, so that any misplaced element shows."""
    held = {tensor.name for tensor in model.graph.initializer}
    found = {}
    for port in model.graph.input:
        if port.name in held:
            continue
        dtype = helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
        shape = lengths[port.name]
        size = int(np.prod(shape))
        numbers = np.random.default_rng(size).permutation(size) - size // 3
        found[port.name] = numbers.reshape(shape).astype(dtype)
    return found


NAN_AND_ZERO = np.asarray([[np.nan, -0.0, 0.0], [np.inf, 1.0, -np.inf]], np.float32)
ATTENTION = """
    q1 = Reshape(q, heads)  k1 = Reshape(k, heads)  v1 = Reshape(v, heads)
    q2 = Transpose<perm = [0, 2, 1, 3]>(q1)  k2 = Transpose<perm = [0, 2, 3, 1]>(k1)
    v2 = Transpose<perm = [0, 2, 1, 3]>(v1)
    s = MatMul(q2, k2)  s1 = Mul(s, scale)  p = Softmax<axis = -1>(s1)  o = MatMul(p, v2)
    o1 = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(o1, flat)"""
FLOAT8 = helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT8E4M3FN)
TO_LAST, TO_FIRST = "perm = [0, 2, 3, 1]", "perm = [0, 3, 1, 2]"

CASES = [
    HardCase(1, "identity Transpose before MatMul", "float[{A},{B}] x",
             "t = Transpose<perm = [0, 1]>(x) y = MatMul(t, w)", drawn={"w": "B,C"}, left=0),
    HardCase(1, "swap before Gemm", "float[{A},{B}] x",
             "t = Transpose<perm = [1, 0]>(x) y = Gemm(t, w)", drawn={"w": "A,C"}, left=0),
    HardCase(2, "two perms that do not commute", "float[{A},{B},{C}] x",
             "t = Transpose<perm = [1, 0, 2]>(x) y = Transpose<perm = [0, 2, 1]>(t)", left=1),
    HardCase(3, "no perm", "float[{A},{B},{C}] x", "t = Transpose(x) r = Relu(t) y = Transpose(r)",
             left=0),
    HardCase(4, "Transpose of the third operand of Gemm", "float[{A},{B}] x, float[{C},{A}] c",
             "t = Transpose(c) y = Gemm(x, w, t)", drawn={"w": "B,C"}, left=1),
    HardCase(5, "stale value_info", "float[{A},{B},{C},{D}] x",
             f"t = Transpose<{TO_LAST}>(x) r = Relu(t) y = Transpose<{TO_FIRST}>(r)", left=0,
             value_info="r"),
    HardCase(6, "attention with heads of nine", "float[1,5,18] q, float[1,5,18] k, float[1,5,18] v",
             ATTENTION, constants={"heads": ints(0, 0, 2, 9), "flat": ints(0, 0, 18),
                                   "scale": np.asarray(1 / 64, np.float32)},
             target="ort", left=0, regimes=("primes",)),
    HardCase(7, "operands in different layouts",
             "float[{A},{B},{C},{D}] x, float[{A},{C},{D},{B}] v",
             f"t = Transpose<{TO_LAST}>(x) s = Add(t, v) y = Transpose<{TO_FIRST}>(s)", left=1),
    HardCase(7, "the same the other way round",
             "float[{A},{B},{C},{D}] x, float[{A},{C},{D},{B}] v",
             f"t = Transpose<{TO_LAST}>(x) s = Add(v, t) y = Transpose<{TO_FIRST}>(s)", left=1),
    HardCase(8, "a length of 1 that is left of blocking", "float[{A},4,{C},{D}] x",
             "b = Reshape(x, blocks) t = Transpose<perm = [0, 1, 3, 4, 2]>(b) s = Add(t, w) "
             "u = Transpose<perm = [0, 1, 4, 2, 3]>(s) y = Reshape(u, back)",
             constants={"blocks": ints(0, 1, 4, -1, 1), "back": ints(0, 4, -1, 1),
                        "w": small(1, 1, 1, 1, 4)}, left=0),
    HardCase(9, "an operand of one axis", "float[{A},{B},{C}] x",
             "t = Transpose<perm = [0, 2, 1]>(x) s = Add(t, w) y = Transpose<perm = [0, 2, 1]>(s)",
             drawn={"w": "B"}, left=0),
    HardCase(10, "all lengths equal", "float[{A},{B},{C}] x",
             "t = Transpose<perm = [0, 2, 1]>(x) m = MatMul(t, w) "
             "y = Transpose<perm = [0, 2, 1]>(m)", drawn={"w": "B,D"}),
    HardCase(11, "Expand before Transpose", "float[1,{B},1] x",
             "e = Expand(x, shape) y = Transpose<perm = [2, 0, 1]>(e)",
             constants={"shape": ints(3, 1, 5)}),
    HardCase(12, "RoiAlign, Transpose, Concat along the first axis", "float[1,{B},6,6] x",
             f"r = RoiAlign<output_height = 2, output_width = 3>(x, rois, at) "
             f"t = Transpose<{TO_LAST}>(r) c = Concat<axis = 0>(t, t) "
             f"y = Transpose<{TO_FIRST}>(c)", left=0,
             constants={"rois": np.asarray([[0, 0, 4, 4], [1, 1, 5, 3]], np.float32),
                        "at": ints(0, 0)}),
    HardCase(13, "axes as an attribute", "float[{A},{B},{C},{D}] x", opset=13, left=0, body=
             f"t = Transpose<{TO_LAST}>(x) r = ReduceMax<axes = [1, 2], keepdims = 1>(t) "
             f"y = Transpose<{TO_FIRST}>(r)"),
    HardCase(13, "axes as an input", "float[{A},{B},{C},{D}] x", left=0, body=
             f"t = Transpose<{TO_LAST}>(x) r = ReduceMax<keepdims = 1>(t, a) "
             f"y = Transpose<{TO_FIRST}>(r)", constants={"a": ints(1, -2)}),
    HardCase(13, "no axes are all", "float[{A},{B},{C},{D}] x", left=0, body=
             f"t = Transpose<{TO_LAST}>(x) r = ReduceMax<keepdims = 1>(t, a) "
             f"y = Transpose<{TO_FIRST}>(r)", constants={"a": ints()}),
    HardCase(13, "no axes are none", "float[{A},{B},{C},{D}] x", left=0, body=
             f"t = Transpose<{TO_LAST}>(x) r = ReduceMax<noop_with_empty_axes = 1>(t, a) "
             f"y = Transpose<{TO_FIRST}>(r)", constants={"a": ints()}),
    HardCase(14, "Split with sizes as an attribute", "float[{A},6,{C}] x", opset=11, left=0, body=
             "t = Transpose<perm = [0, 2, 1]>(x) p, q = Split<axis = 2, split = [2, 4]>(t) "
             "y = Transpose<perm = [0, 2, 1]>(p) z = Transpose<perm = [0, 2, 1]>(q)",
             outputs="float y, float z"),
    HardCase(14, "Split with sizes as an input", "float[{A},6,{C}] x", left=0, body=
             "t = Transpose<perm = [0, 2, 1]>(x) p, q = Split<axis = 2>(t, sizes) "
             "y = Transpose<perm = [0, 2, 1]>(p) z = Transpose<perm = [0, 2, 1]>(q)",
             outputs="float y, float z", constants={"sizes": ints(1, 5)}),
    HardCase(14, "Split in a number of parts", "float[{A},6,{C}] x", left=0, body=
             "t = Transpose<perm = [0, 2, 1]>(x) p, q = Split<axis = -1, num_outputs = 2>(t) "
             "y = Transpose<perm = [0, 2, 1]>(p) z = Transpose<perm = [0, 2, 1]>(q)",
             outputs="float y, float z"),
    HardCase(15, "Slice with a step", "float[{A},7,{C},5] x", left=0, body=
             f"t = Transpose<{TO_LAST}>(x) s = Slice(t, starts, ends, axes, steps) "
             f"y = Transpose<{TO_FIRST}>(s)",
             constants={"starts": ints(0, -1), "ends": ints(5, -100), "axes": ints(-1, 2),
                        "steps": ints(3, -2)}),
    HardCase(15, "Pad", "float[{A},{B},{C},{D}] x", left=0, body=
             f"t = Transpose<{TO_LAST}>(x) p = Pad(t, pads) y = Transpose<{TO_FIRST}>(p)",
             constants={"pads": ints(0, 1, 2, 3, 4, 5, 6, 7)}),
    HardCase(16, "Resize channels last", "float[1,{B},{C},{D}] x", left=0, body=
             f"t = Transpose<{TO_LAST}>(x) r = Resize<mode = \"nearest\">(t, , scales) "
             f"y = Transpose<{TO_FIRST}>(r)",
             constants={"scales": np.asarray([1, 2, 3, 1], np.float32)}),
    HardCase(16, "Resize on a target with kernels", "float[1,{B},{C},{D}] x", target="nhwc", body=
             f"t = Transpose<{TO_LAST}>(x) r = Resize<mode = \"nearest\">(t, , scales) "
             f"y = Transpose<{TO_FIRST}>(r)",
             constants={"scales": np.asarray([1, 2, 3, 1], np.float32)}, regimes=("primes",)),
    HardCase(17, "DepthToSpace written out, columns first", "float[1,12,{C},{D}] x",
             "b = Reshape(x, split) t = Transpose<perm = [0, 1, 4, 2, 5, 3]>(b) "
             "y = Reshape(t, joined)", regimes=("primes",),
             constants={"split": ints(1, 3, 2, 2, 5, 7), "joined": ints(1, 3, 10, 14)}),
    HardCase(17, "DepthToSpace written out, depth first", "float[1,12,{C},{D}] x",
             "b = Reshape(x, split) t = Transpose<perm = [0, 3, 4, 1, 5, 2]>(b) "
             "y = Reshape(t, joined)", regimes=("primes",),
             constants={"split": ints(1, 2, 2, 3, 5, 7), "joined": ints(1, 3, 10, 14)}),
    HardCase(18, "Transposes around a Reshape that merges no whole run", "float[2,3,4] x",
             "t = Transpose<perm = [0, 2, 1]>(x) r = Reshape(t, shape) "
             "y = Transpose<perm = [0, 2, 1]>(r)", constants={"shape": ints(2, 3, 4)},
             regimes=("primes",)),
    HardCase(18, "Transposes around a Reshape that merges a run", "float[{A},{B},{C},{D}] x",
             f"t = Transpose<{TO_LAST}>(x) r = Reshape(t, shape) "
             "y = Transpose<perm = [0, 2, 1]>(r)", constants={"shape": ints(0, -1, 3)},
             regimes=("primes", "ones"), left=0),
    HardCase(19, "Conv of unknown rank", "float[1,3,5,7] x, int64[4] shape",
             f"r = Reshape(x, shape) t = Transpose<{TO_FIRST}>(r) y = Conv(t, w)",
             constants={"w": small(2, 3, 2, 2)}, regimes=("primes",)),
    HardCase(20, "Transpose, Cast, MatMul with a length of 1", "float16[1,{B},{C}] x",
             "t = Transpose<perm = [0, 2, 1]>(x) c = Cast<to = 1>(t) y = MatMul(c, w)",
             drawn={"w": "1,B,D"}),
    HardCase(21, "ConvTranspose between Transposes", "float[{A},5,6,4] x", left=1, body=
             f"t = Transpose<{TO_FIRST}>(x) c = ConvTranspose<strides = [2, 1]>(t, w, b) "
             f"r = Transpose<{TO_LAST}>(c) s = Relu(r) y = Transpose<{TO_FIRST}>(s)",
             constants={"w": small(4, 3, 3, 2), "b": small(3)}),
    *(
        HardCase(22, f"ConvTranspose in {group} groups, channels last", "float[{A},5,6,4] x",
                 f"t = Transpose<{TO_FIRST}>(x) "
                 f"c = ConvTranspose<group = {group}, strides = [2, 1]>(t, w) "
                 f"y = Transpose<{TO_LAST}>(c)", target="nhwc", left=0,
                 constants={"w": small(4, 2, 3, 2)}, regimes=("primes",))
        for group in (1, 2, 4)
    ),
    HardCase(23, "blocked scales with a short last block", "int8[{A},5,{C}] x", opset=21, left=0,
             body="t = Transpose<perm = [0, 2, 1]>(x) "
             "d = DequantizeLinear<axis = 2, block_size = 2>(t, scales) "
             "y = Transpose<perm = [0, 2, 1]>(d)", regimes=("primes",),
             constants={"scales": 1 + np.arange(30, dtype=np.float32).reshape(2, 5, 3) / 32}),
    HardCase(24, "products side by side, one of batches", "float[18,{B},1] x",
             "y = MatMul(x, w) t = Transpose<perm = [0, 2, 1]>(x) z = MatMul(t, u)",
             outputs="float y, float z", constants={"w": small(18, 1, 8)}, drawn={"u": "B,2"}),
    HardCase(25, "a Conv with several readers", "float[1,3,6,6] x",
             f"c = Conv(x, w) t = Transpose<{TO_LAST}>(c) r = Relu(t) "
             f"y = Transpose<{TO_FIRST}>(r) z = Mul(c, c)", outputs="float y, float z", left=0,
             constants={"w": small(2, 3, 2, 2)}, regimes=("primes",)),
    HardCase(26, "a value between that is a result", "float[{A},{B},{C},{D}] x",
             f"z = Transpose<{TO_LAST}>(x) r = Relu(z) y = Transpose<{TO_FIRST}>(r)",
             outputs="float y, float z", left=1),
    HardCase(27, "a Transpose that two others undo", "float[{A},{B},{C}] x",
             "t = Transpose<perm = [0, 2, 1]>(x) r = Relu(t) y = Transpose<perm = [0, 2, 1]>(r) "
             "z = Transpose<perm = [0, 2, 1]>(t)", outputs="float y, float z", left=0),
    HardCase(28, "fan-out of a Conv channels last", "float[1,6,6,3] x", target="nhwc", left=0,
             body=f"t = Transpose<{TO_FIRST}>(x) c = Conv(t, w) r = Relu(c) s = Sigmoid(c) "
             f"y = Transpose<{TO_LAST}>(r) z = Transpose<{TO_LAST}>(s)",
             outputs="float y, float z", constants={"w": small(2, 3, 2, 2)}, regimes=("primes",)),
    HardCase(29, "a fused product that has a factor and a flag", "float[{A},{B}] x",
             "t = Transpose<perm = [1, 0]>(x) "
             "y = com.microsoft.FusedMatMul<alpha = 2.0, transA = 1>(t, w)",
             drawn={"w": "B,C"}, target="ort", objective="count", left=0),
    HardCase(30, "a chain longer than one sweep", "float[{A},{B},{C}] x", left=0, body=" ".join(
             f"v{i + 1} = Relu(v{i})" if i % 2 else
             f"v{i + 1} = Transpose<perm = [1, 2, 0]>({'x' if not i else f'v{i}'})"
             for i in range(36)) + " y = Identity(v36)"),
    HardCase(31, "constants that differ in the sign of zero", "float[3,2] x", regimes=("primes",),
             body="t = Transpose(p) u = Transpose(q) i = Reciprocal(t) j = Reciprocal(u) "
             "y = Add(x, i) z = Add(x, j)", outputs="float y, float z", left=0,
             constants={"p": np.zeros((2, 3), np.float32), "q": -np.zeros((2, 3), np.float32)}),
    *(
        HardCase(32, f"Pad before {pool}", "float[1,{B},5,6] x", left=0, body=
                 f"t = Transpose<{TO_LAST}>(x) p = Pad(t, pads) u = Transpose<{TO_FIRST}>(p) "
                 f"y = {pool}<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(u)",
                 constants={"pads": ints(0, 1, 1, 0, 0, 1, 1, 0)})
        for pool in ("MaxPool", "AveragePool")
    ),
    HardCase(33, "a normalisation by means without the axis", "float[{A},{A},{A}] x", body=
             "t = Transpose<perm = [0, 2, 1]>(x) m = ReduceMean<keepdims = 0>(t, a) "
             "s = Sub(t, m) y = Transpose<perm = [0, 2, 1]>(s)", constants={"a": ints(-1)}),
    HardCase(34, "a normalisation over other axes", "float[{A},{B},{C}] x", left=0, body=
             "t = Transpose<perm = [0, 2, 1]>(x) m = ReduceMean(t, a) d = Sub(t, m) "
             "q = Mul(d, d) v = ReduceMean(q, a) e = Add(v, eps) r = Sqrt(e) n = Div(d, r) "
             "y = Transpose<perm = [0, 2, 1]>(n)",
             constants={"a": ints(1), "eps": np.asarray(1e-3, np.float32)}),
    HardCase(35, "Relu and Clip of doubles, one bound left out", "double[{A},{B},{C}] x", left=0,
             body="t = Transpose<perm = [0, 2, 1]>(x) r = Relu(t) c = Clip(r, , high) "
             "y = Transpose<perm = [0, 2, 1]>(c)", outputs="double y",
             constants={"high": np.asarray(6.0)}),
    HardCase(35, "Clip of whole numbers, no bounds", "int32[{A},{B},{C}] x", left=0,
             body="t = Transpose<perm = [0, 2, 1]>(x) c = Clip(t) "
             "y = Transpose<perm = [0, 2, 1]>(c)", outputs="int32 y"),
    HardCase(36, "Casts to whole numbers and back", "float[{A},{B},{C}] x", left=0,
             body="h = Mul(x, half) t = Transpose<perm = [0, 2, 1]>(h) i = Cast<to = 7>(t) "
             "f = Cast<to = 1>(i) y = Transpose<perm = [0, 2, 1]>(f)",
             constants={"half": np.asarray(0.5, np.float32)}),
    HardCase(37, "parameters that a caller may replace", "float[{A},5,4,3] x", overridable=True,
             body=f"t = Transpose<{TO_FIRST}>(x) b = BatchNormalization(t, s, o, m, v) "
             f"y = Transpose<{TO_LAST}>(b)",
             constants={"s": small(3), "o": small(3), "m": small(3), "v": np.ones(3, np.float32)}),
    HardCase(38, "constants with NaN and infinities", "float[3,2] x", left=0, regimes=("primes",),
             body="t = Transpose(c) y = Where(test, x, t)",
             constants={"c": NAN_AND_ZERO, "test": np.zeros((3, 2), np.bool_)}),
    HardCase(39, "CastLike without saturation", "float[{A},{B}] x", opset=21, left=0,
             body="t = Transpose(x) e = CastLike<saturate = 0>(t, like) u = Transpose(e) "
             "y = Cast<to = 1>(u)",
             constants={"like": np.zeros(1, FLOAT8)}),
]  # fmt: skip
"""Every row has at least one."""
