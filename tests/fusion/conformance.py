"""Graphs of TVM's own tests in ONNX, with the groups that TVM expects."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fusion.tables import weight

SCALAR = "float c = {1.0}"
CONV3 = "Conv<pads = [1,1,1,1]>"


@dataclass(frozen=True, slots=True)
class Expected:
    name: str
    graph: str
    groups: list[str]


def _chain(count: int) -> str:
    steps = [f"v{i + 1} = Exp({'x' if i == 0 else f'v{i}'})" for i in range(count)]
    return f"g (float[10] x) => (float[10] v{count}) {{ {' '.join(steps)} }}"


def _diamonds(count: int, length: int) -> str:
    steps, start = [], "x"
    for diamond in range(count):
        for side in "ab":
            for place in range(length):
                source = start if place == 0 else f"{side}{diamond}_{place - 1}"
                steps.append(f"{side}{diamond}_{place} = Exp({source})")
        last = length - 1
        steps.append(f"j{diamond} = Add(a{diamond}_{last}, b{diamond}_{last})")
        start = f"j{diamond}"
    return f"g (float[10] x) => (float[10] {start}) {{ {' '.join(steps)} }}"


CHAIN_300, CHAIN_20 = _chain(300), _chain(20)
DIAMONDS = _diamonds(3, 5)

CONV2D = f"""g (float[1,2,8,8] x) => (float[1,2,8,8] z)
<{SCALAR}, {weight("w1", 2, 2, 3, 3)}, {weight("w2", 2, 2, 1, 1)}, {weight("w3", 2, 2, 3, 3)}>
{{
  a = Add(x, c) y = {CONV3}(a, w1) y1 = Add(c, y) y2 = Add(y, y1)
  z2 = Conv(y2, w2) z3 = {CONV3}(y2, w3) z = Add(z2, z3)
}}"""

UPSAMPLED = """
  p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x)
  u = Resize<mode = "nearest">(p, , s)
"""
SCALES = "float[4] s = {1.0, 1.0, 2.0, 2.0}"

CONCATENATE = f"""g (float[1,2,8,8] x) => (float[1,4,8,8] y) <{SCALAR}, {SCALES}>
{{ {UPSAMPLED} k = Concat<axis = 1>(u, x) y = Add(k, c) }}"""

TUPLE_ROOT = f"g (float[1,2,8,8] x) => (float[1,2,8,8] u) <{SCALES}> {{ {UPSAMPLED} }}"

CONTROL = """g (int64 x, int64 y) => (int64 z) {
  k = Greater(x, y)
  z = If(k) <then_branch = t () => (int64 a) { a = Identity(x) },
             else_branch = e () => (int64 b) { b = Identity(y) }>
}"""

TUPLE_GET = f"""g (float[1,10] x) => (float[1,10] y) <{weight("w", 30, 10)}> {{
  d = Gemm<transB = 1>(x, w) s0, s1, s2 = Split<axis = 1, num_outputs = 3>(d)
  a = Sigmoid(s0) b = Tanh(s1) e = Exp(s2) m = Mul(b, e) y = Add(a, m)
}}"""

TUPLE_GET_ROOT = f"""g (float[1,30] x) => (float[1,5] y) <{weight("w", 5, 10)}> {{
  s0, s1, s2 = Split<axis = 1, num_outputs = 3>(x) y = Gemm<transB = 1>(s0, w)
}}"""

INTERMEDIATE = f"""g (float[1,16,1] x) => (float[48] y) <{SCALAR}> {{
  s = Squeeze(x) a1 = Add(s, c) q = Squeeze(s) a2 = Add(q, c) a3 = Add(a2, c) a4 = Add(s, c)
  k = Concat<axis = 0>(a1, a3, a4) o = Squeeze(k) y = Add(o, c)
}}"""


def _joined(number: int) -> str:
    adds = " ".join(f"a{number}{i} = Add(x, c)" for i in range(3))
    joined = f"k{number} = Concat<axis = 1>(a{number}0, a{number}1, a{number}2)"
    return f"{adds} {joined} b{number} = Add(k{number}, c)"


CONSECUTIVE = f"""g (float[1,2,8,8] x) => (float[1,18,4,4] o, float[1,18,4,4] o2) <{SCALAR}> {{
  {_joined(0)} {_joined(1)} {_joined(2)}
  k = Concat<axis = 1>(b0, b1, b2) p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(k)
  o = Add(p, c) o2 = Add(o, c)
}}"""
JOINED = "a00 a01 a02 k0 b0 a10 a11 a12 k1 b1 a20 a21 a22 k2 b2 k"

INCEPTION = f"""g (float[1,2,8,8] x) => (float[1,4,8,8] y)
<{weight("w", 2, 2, 3, 3)}, {weight("v", 2, 2, 1, 1)}, {weight("w2", 2, 4, 3, 3)},
 {weight("v2", 2, 4, 1, 1)}>
{{
  a = {CONV3}(x, w) ar = Relu(a) b = Conv(x, v) br = Relu(b) k = Concat<axis = 1>(ar, br)
  d = {CONV3}(k, w2) dr = Relu(d) e = Conv(k, v2) er = Relu(e) y = Concat<axis = 1>(dr, er)
}}"""

GATHER = """g (float[10,1] x) => (float[10] y) <int64 i = {1}>
{ k = Concat<axis = 1>(x, x) y = Gather<axis = 1>(k, i) }"""

GATHER_ND = """g (float[10,1] x) => (float[2] y) <int64[2,2] i = {1,0,2,1}>
{ k = Concat<axis = 1>(x, x) y = GatherND(k, i) }"""

MULTIPLE_PATHS = f"""g (float[1,2,8,8] x, float[1,128] r, float[2] b1, float[64] b2)
=> (float[1,2,8,8] y)
<{weight("w", 2, 2, 3, 3)}, {weight("v", 128, 128)}, {weight("b3", 128)},
 int64[4] s = {{1,2,1,1}}, int64[4] t = {{1,2,8,8}}>
{{
  a = {CONV3}(x, w) q = Reshape(b1, s) add = Add(a, q)
  k = Transpose(v) m = MatMul(r, k) add1 = Add(m, b3) q1 = Reshape(add1, t) y = Add(add, q1)
}}"""

DEAD = f"""g (float[4,8] x) => (float[4,8] y) <{weight("w", 8, 8)}, {weight("b", 8)}> {{
  t = Transpose(x) m = MatMul(t, x) a = Add(m, b) r = Relu(a) m1 = MatMul(x, w) y = Add(m1, b)
}}"""

RELAY = (
    Expected(
        "simple",
        f"g (float[10,20] x) => (float[10,20] y) <{SCALAR}>"
        " { a = Add(x, c) b = Exp(a) y = Squeeze(b) }",
        ["a b y"],
    ),
    Expected("conv2d", CONV2D, ["a", "y y1 y2", "z2 z", "z3"]),
    Expected("concatenate", CONCATENATE, ["p", "u k y"]),
    Expected("tuple root", TUPLE_ROOT, ["p", "u"]),
    Expected(
        "stop fusion",
        f"g (float[10] x) => (float[10] y) <{SCALAR}>"
        " { a = Add(x, c) s = com.microsoft.StopFusion(a) y = Exp(s) }",
        ["a", "s", "y"],
    ),
    Expected("control flow", CONTROL, ["k", "z"]),
    Expected("tuple get elementwise", TUPLE_GET, ["d", "s0 a b e m y"]),
    Expected("tuple get root", TUPLE_GET_ROOT, ["s0", "y"]),
    Expected("tuple intermediate", INTERMEDIATE, ["s a1 q a2 a3 a4 k o y"]),
    Expected("tuple consecutive", CONSECUTIVE, [JOINED, "o2", "p o"]),
    Expected("inception", INCEPTION, ["a ar", "b br", "d dr", "e er", "k", "y"]),
    Expected(
        "parallel injective",
        f"g (float[10,10] x) => (float[10,10] z) <{SCALAR}>"
        " { y = Add(x, c) s = Squeeze(y) t = Transpose(y) z = Add(s, t) }",
        ["y s t z"],
    ),
    Expected("take", GATHER, ["k y"]),
    Expected("gather nd", GATHER_ND, ["k y"]),
    Expected(
        "broadcast, reduce scalar",
        "g (int32 x) => (bool y) <int32 c = {10}>"
        " { a = Less(x, c) y = ReduceMin<keepdims = 0>(a) }",
        ["a y"],
    ),
    Expected(
        "softmax",
        "g (float[16,16] x) => (float16[16,16] y) { s = Softmax(x) y = Cast<to = 10>(s) }",
        ["s y"],
    ),
)

RELAX = (
    Expected(
        "parallel injective chain",
        f"g (float[10,10] x) => (float[10,10] z) <{SCALAR}>"
        " { y = Add(x, c) t = Transpose(y) u = Transpose(t) v = Add(y, t) z = Add(v, u) }",
        ["y t u v z"],
    ),
    Expected(
        "packed calls",
        "g (float[4] x) => (float[4] y)"
        " { a = com.microsoft.Packed(x) y = com.microsoft.Packed(a) }",
        ["a", "y"],
    ),
    Expected(
        "edge with packed call",
        "g (float[4] x) => (float[4] b, float[4] p)"
        " { a = Exp(x) b = Exp(a) p = com.microsoft.Packed(a) }",
        ["a", "b", "p"],
    ),
    Expected(
        "layer norm, relu",
        f"g (float[4,8] x) => (float[4,8] y) <{weight('s', 8)}, {weight('b', 8)}>"
        " { n = LayerNormalization(x, s, b) y = Relu(n) }",
        ["n y"],
    ),
    Expected("multiple paths", MULTIPLE_PATHS, ["a add y", "k", "m add1", "q", "q1"]),
    Expected("dead group", DEAD, ["a", "m", "m1 y", "r", "t"]),
    Expected(
        "symbolic",
        f'g (float["n","m"] x) => (float["n","m"] y) <{SCALAR}>'
        " { a = Add(x, c) b = Exp(a) y = Squeeze(b) }",
        ["a b y"],
    ),
    Expected(
        "packed parameters",
        "g (float16[8,8] v, float16[8,8] w, float[4,8] x) => (float[4,8] y)"
        " { a = Cast<to = 1>(v) b = Cast<to = 1>(w) m = MatMul(x, a) y = MatMul(m, b) }",
        ["a", "b", "m", "y"],
    ),
)
