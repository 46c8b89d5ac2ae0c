"""Graphs like those of tf2onnx's own tests: never more Transposes are left here."""

from __future__ import annotations

import pytest

from relayout.ops.measure import Objective
from tests.assign.pinned import BACK, OUT, SWAP, Case, assert_no_more, perm
from tests.objectives import COUNTED


def image(*shape: int) -> str:
    return f"float[{','.join(map(str, shape))}]"


def around(call: str, initialisers: str = "", left: int = 0, more: str = "", **sizes: str) -> Case:
    """An operator that reads `t`, between a Transpose and its inverse."""
    taken, given = sizes.get("taken", image(2, 3, 4, 5)), sizes.get("given", image(2, 3, 4, 5))
    body = f"t = {OUT}(x) r = {call} y = {BACK}(r)"
    return Case(left, f"({taken} x{more}) => ({given} y)", body, initialisers, exact=False)


def around_5d(call: str, left: int = 0, more: str = "", given: str = image(2, 3, 4, 5, 6)) -> Case:
    body = f"t = {perm('02341')}(x) r = {call} y = {perm('04123')}(r)"
    return Case(left, f"({image(2, 3, 4, 5, 6)} x{more}) => ({given} y)", body, exact=False)


UNARY = (
    "Abs",
    "Ceil",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "HardSigmoid",
    "Identity",
    "LeakyRelu",
    "Log",
    "Neg",
    "Reciprocal",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Sqrt",
    "Tanh",
)
BYTES = "uint8[2,3,4,5]"
PER_AXIS = "float[5] s = {0.75,0.1,2.3,0.3,0.42}, uint8[5] q = {2,4,6,8,10}"
WHOLE = "float s = {0.75}, uint8 q = {3}"
CONSTANT = f"float[2,4,5,3] k = {{{','.join(str(i % 11) for i in range(120))}}}"
SUFFIXES = ("float[3]", "float[5,3]", "float[4,5,3]", "float[2,4,5,3]")

TF2ONNX = {
    **{name: around(f"{name}(t)") for name in UNARY},
    **{f"{name}, five axes": around_5d(f"{name}(t)") for name in ("Relu", "LeakyRelu", "Sqrt")},
    "Cast": around("Cast<to=7>(t)", given="int64[2,3,4,5]"),
    "Clip": around("Clip(t, k)", "float k = {3}"),
    "QuantizeLinear": around("QuantizeLinear(t, s, q)", WHOLE, given=BYTES),
    "QuantizeLinear by axis": around("QuantizeLinear<axis=2>(t, s, q)", PER_AXIS, given=BYTES),
    "DequantizeLinear": around("DequantizeLinear(t, s, q)", WHOLE, taken=BYTES),
    "DequantizeLinear by axis": around("DequantizeLinear<axis=2>(t, s, q)", PER_AXIS, taken=BYTES),
    **{
        f"Concat {axis}": around(
            f"Concat<axis={axis}>(t, v)",
            left=1,
            more=", float[2,4,5,3] v",
            given=image(*(n * 2 if axis == a else n for n, a in ((2, 0), (3, 3), (4, 1), (5, 2)))),
        )
        for axis in range(4)
    },
    "Add vector": around("Add(t, v)", more=", float[3] v"),
    "Add image": around("Add(t, v)", left=1, more=", float[2,4,5,3] v"),
    "Add image, five axes": around_5d("Add(t, v)", 1, ", float[2,4,5,6,3] v"),
    "Add unit channel": around(
        "Add(t, v)", more=", float[1,3,3,1] v", taken=image(1, 1, 3, 3), given=image(1, 1, 3, 3)
    ),
    "Max constants": around("Max(t, k, k, two)", f"{CONSTANT}, float[1] two = {{2}}"),
    "Max image": around("Max(t, v, k)", CONSTANT, left=1, more=", float[2,4,5,3] v"),
    "Sum constant": around("Sum(t, k, t)", CONSTANT),
    "Mul square": around("Mul(t, t)"),
    "Mul constant": around("Mul(t, k)", "float[1,3] k = {1,2,3}"),
    **{
        f"Sub {side} {suffix}": around(
            call, left=0 if suffix == SUFFIXES[0] else 1, more=f", {suffix} v"
        )
        for suffix in SUFFIXES
        for side, call in (("right", "Sub(t, v)"), ("left", "Sub(v, t)"))
    },
    "Sub constant": around("Sub(k, t)", CONSTANT),
    "PRelu": around("PRelu(t, k)", "float[3] k = {1,2,3}"),
    "Slice": around(
        "Slice(t, a, b, c)",
        "int64[2] a = {0,0}, int64[2] b = {2,1}, int64[2] c = {1,2}",
        given=image(2, 3, 2, 1),
    ),
    "Pad": around("Pad(t, p)", "int64[8] p = {1,0,1,3,0,0,2,0}", given=image(3, 6, 4, 8)),
    "Pad at run time": around("Pad(t, p)", more=", int64[8] p", given="float[A,B,C,D]"),
    "Tile": around("Tile(t, p)", "int64[4] p = {3,6,5,2}", given=image(6, 6, 24, 25)),
    "Softmax": around("Softmax<axis=3>(t)"),
    "LogSoftmax": around("LogSoftmax<axis=3>(t)"),
    **{
        f"{name} kept": around(
            f"{name}<keepdims=1>(t, a)", "int64[2] a = {1,2}", given=image(2, 3, 1, 1)
        )
        for name in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare")
    },
    "Split": Case(
        0,
        "(float[2,6,4,5] x) => (float[2,3,4,5] y, float[2,3,4,5] z)",
        f"t = {OUT}(x) a, b = Split<axis=3, num_outputs=2>(t) y = {BACK}(a) z = {BACK}(b)",
    ),
    "ReduceMax dropped": Case(
        0,
        "(float[1,3,4,5] x) => (float[1,3,4] y)",
        f"t = {OUT}(x) r = ReduceMax<keepdims=0>(t, a) y = {SWAP}(r)",
        "int64[1] a = {2}",
    ),
    "ArgMax": Case(
        0,
        "(float[1,2,3,4] x) => (int32[1,3,4] y)",
        f"t = {OUT}(x) r = ArgMax<axis=3, keepdims=0>(t) y = Cast<to=6>(r)",
    ),
    "Shape": Case(0, "(float[2,3,4,5] x) => (int64[4] y)", f"t = {OUT}(x) y = Shape(t)"),
    "Shape, symbolic": Case(0, "(float[N,3,H,W] x) => (int64[4] y)", f"t = {OUT}(x) y = Shape(t)"),
    "Identity alone": Case(
        1, "(float[2,3,4,5] x) => (float[2,4,5,3] y)", f"t = {OUT}(x) y = Identity(t)"
    ),
    "merge": Case(
        1, "(float[2,3,4,5] x) => (float[2,4,5,3] y)", f"s = {OUT}(x) t = {OUT}(x) y = Mul(s, t)"
    ),
    **{
        f"Squeeze {axes}": Case(
            left,
            f"({taken} x) => ({given} y)",
            f"t = {OUT}(x) y = Squeeze(t, a)",
            f"int64[{len(axes)}] a = {{{','.join(map(str, axes))}}}",
        )
        for axes, left, taken, given in (
            ((0,), 1, image(1, 3, 4, 5), image(4, 5, 3)),
            ((1,), 1, image(3, 4, 1, 5), image(3, 5, 4)),
            ((3,), 0, image(3, 1, 4, 5), image(3, 4, 5)),
            ((1, 3), 0, image(3, 1, 1, 5), image(3, 5)),
        )
    },
    "Conv, bias": Case(
        0,
        "(float[1,5,3,3] v, float[4,5,3,3] w) => (float[1,4,1,1] y)",
        f"x = Conv(v, w) t = {OUT}(x) r = Add(t, k) y = {BACK}(r)",
        "float[1,1,1,4] k = {1,2,3,4}",
    ),
    "Conv, image": Case(
        0,
        "(float[1,2,5,5] v, float[1,2,3,3] w) => (float[1,1,3,3] y)",
        f"x = Conv(v, w) t = {OUT}(x) r = Add(t, k) y = {BACK}(r)",
        "float[1,3,3,1] k = {1,2,3,4,5,6,7,8,9}",
    ),
}


@pytest.mark.parametrize("objective", COUNTED, ids=lambda o: str(o.value))
@pytest.mark.parametrize("name", TF2ONNX)
def test_no_more_than_tf2onnx(name: str, objective: Objective) -> None:
    assert_no_more(TF2ONNX[name], objective)
