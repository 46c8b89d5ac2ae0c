"""Graphs with known numbers of kernels: what TVM makes of them, and what relayout should."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    graph: str
    tvm: int
    """Kernels that TVM's rules give."""
    most: int
    """The most kernels that relayout may need."""


def weight(name: str, *shape: int) -> str:
    values = ",".join(["0.5"] * prod(shape))
    return f"float[{','.join(map(str, shape))}] {name} = {{{values}}}"


def weights(*names: str) -> str:
    return ", ".join(weight(name, 8, 8, 3, 3) for name in names)


IMAGE = "float[1,8,16,16]"
CONV = "Conv<pads = [1, 1, 1, 1]>"
ROWS = "g (float[4,64] x) => (float[4,{n}] y) <int64[1] a = {{1}}> {{ {body} }}"


def _image(body: str, *names: str, out: str = f"{IMAGE} y", more: str = "") -> str:
    given = ", ".join(filter(None, (weights(*names), more)))
    return f"g ({IMAGE} x) => ({out}) <{given}> {{ {body} }}"


def _rows(body: str, length: int) -> str:
    return ROWS.format(body=body, n=length)


LAYER_NORM = f"""g (float[4,64] x) => (float[4,64] y)
<int64[1] a = {{1}}, float two = {{2.0}}, float eps = {{0.001}},
 {weight("g", 64)}, {weight("b", 64)}>
{{
  m = ReduceMean(x, a) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, a)
  ve = Add(v, eps) s = Sqrt(ve) n = Div(d, s) k = Mul(n, g) y = Add(k, b)
}}"""

ATTENTION = """g (float[2,64,32] q, float[2,32,64] k, float[2,64,32] v) => (float[2,64,32] y)
<float c = {0.1}>
{ s = MatMul(q, k) t = Mul(s, c) p = Softmax<axis = -1>(t) y = MatMul(p, v) }"""

SPLIT = """g (float[4,64] x) => (float[4,64] y) {
  a, b = Split<axis = 1, num_outputs = 2>(x) c = Relu(a) d = Sigmoid(b) y = Concat<axis = 1>(c, d)
}"""

SHUFFLE = f"""g ({IMAGE} x) => ({IMAGE} y)
<int64[5] s = {{1,2,4,16,16}}, int64[4] t = {{1,8,16,16}}>
{{ a = Reshape(x, s) b = Transpose<perm = [0,2,1,3,4]>(a) c = Reshape(b, t) y = Relu(c) }}"""

SMALL = f"""g (float[1,8,1,1] s, {IMAGE} x) => ({IMAGE} y) <{weight("w", 8, 8, 1, 1)}>
{{ a = Conv(s, w) y = Add(a, x) }}"""

SQUEEZE_EXCITE = f"""g ({IMAGE} x) => ({IMAGE} y)
<{weights("w")}, {weight("d", 2, 8, 1, 1)}, {weight("u", 8, 2, 1, 1)}>
{{
  a = {CONV}(x, w) p = GlobalAveragePool(a) b = Conv(p, d) r = Relu(b)
  c = Conv(r, u) s = Sigmoid(c) y = Mul(a, s)
}}"""

QKV = f"""g (float[2,16,8] x) => (float[2,16,8] q, float[2,16,8] k, float[2,16,8] v)
<{weight("wq", 8, 8)}, {weight("wk", 8, 8)}, {weight("wv", 8, 8)}>
{{ q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) }}"""

MOVED = "float[1,16,16,8] y"

TABLE = (
    Row(
        "softmax by hand",
        _rows("m = ReduceMax(x,a) s = Sub(x,m) e = Exp(s) t = ReduceSum(e,a) y = Div(e,t)", 64),
        *(4, 1),
    ),
    Row("layernorm by hand", LAYER_NORM, 4, 1),
    Row("attention", ATTENTION, 3, 2),
    Row("relu, conv", _image(f"r = Relu(x) y = {CONV}(r, w)", "w"), 2, 1),
    Row(
        "pad, conv",
        _image("r = Pad(x, p) y = Conv(r, w)", "w", more="int64[8] p = {0,0,1,1,0,0,1,1}"),
        *(2, 1),
    ),
    Row(
        "conv, transpose",
        _image(f"r = {CONV}(x, w) y = Transpose<perm = [0,2,3,1]>(r)", "w", out=MOVED),
        *(2, 1),
    ),
    Row(
        "conv, relu, transpose, relu",
        _image(
            f"r = {CONV}(x, w) a = Relu(r) b = Transpose<perm = [0,2,3,1]>(a) y = Relu(b)",
            "w",
            out=MOVED,
        ),
        *(2, 1),
    ),
    Row(
        "conv, reshape, relu",
        _image(
            f"r = {CONV}(x, w) a = Reshape(r, s) y = Relu(a)",
            "w",
            out="float[1,8,256] y",
            more="int64[3] s = {1,8,256}",
        ),
        *(2, 1),
    ),
    Row(
        "conv, maxpool",
        _image(
            f"r = {CONV}(x, w) y = MaxPool<kernel_shape = [2,2]>(r)",
            "w",
            out="float[1,8,15,15] y",
        ),
        *(2, 2),
    ),
    Row("sum, sqrt", _rows("t = ReduceSum(x, a) y = Sqrt(t)", 1), 2, 1),
    Row("mean, sqrt", _rows("t = ReduceMean(x, a) y = Sqrt(t)", 1), 2, 1),
    Row("relu, mean", _rows("t = Relu(x) y = ReduceMean(t, a)", 1), 1, 1),
    Row("relu, sum", _rows("t = Relu(x) y = ReduceSum(t, a)", 1), 1, 1),
    Row(
        "transpose, sum",
        "g (float[64,4] x) => (float[4,1] y) <int64[1] a = {1}>"
        " { t = Transpose(x) y = ReduceSum(t, a) }",
        *(2, 1),
    ),
    Row(
        "exp, sum and max",
        "g (float[4,64] x) => (float[4,1] y, float[4,1] z) <int64[1] a = {1}>"
        " { t = Exp(x) y = ReduceSum(t, a) z = ReduceMax(t, a) }",
        *(3, 1),
    ),
    Row(
        "conv, relu, out and sigmoid",
        _image(f"q = {CONV}(x, w) r = Relu(q) y = Sigmoid(r)", "w", out=f"{IMAGE} r, {IMAGE} y"),
        *(2, 1),
    ),
    Row(
        "three convs of one tensor",
        _image(
            f"a = {CONV}(x, w) b = {CONV}(x, w2) c = {CONV}(x, w3)",
            *("w", "w2", "w3"),
            out=f"{IMAGE} a, {IMAGE} b, {IMAGE} c",
        ),
        *(3, 1),
    ),
    Row(
        "two convs, concat, relu",
        _image(
            f"a = {CONV}(x, w) b = {CONV}(x, w2) c = Concat<axis = 1>(a, b) y = Relu(c)",
            *("w", "w2"),
            out="float[1,16,16,16] y",
        ),
        *(3, 1),
    ),
    Row("swish", _image(f"a = {CONV}(x, w) b = Sigmoid(a) y = Mul(a, b)", "w"), 1, 1),
    Row(
        "residual block",
        _image(
            f"a = {CONV}(x, w) b = Relu(a) c = {CONV}(b, w2) d = Add(c, x) y = Relu(d)",
            *("w", "w2"),
        ),
        *(2, 2),
    ),
    Row("split, relu and sigmoid, concat", SPLIT, 1, 1),
    Row("channel shuffle, relu", SHUFFLE, 1, 1),
    Row("small conv and large addend", SMALL, 2, 2),
    Row("squeeze and excite", SQUEEZE_EXCITE, 5, 5),
    Row("three products of one tensor", QKV, 3, 1),
    Row(
        "relu shared by two convs",
        _image(
            f"r = Relu(x) a = {CONV}(r, w) b = Conv(r, w2)",
            *("w", "w2"),
            out=f"{IMAGE} a, float[1,8,14,14] b",
        ),
        *(3, 2),
    ),
)
