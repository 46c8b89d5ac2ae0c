"""The graphs of coremltools' own tests: never more Transposes are left here."""

from __future__ import annotations

import pytest

from relayout.ops.measure import Objective
from tests.assign.pinned import BACK, OUT, SWAP, Case, assert_no_more, perm
from tests.objectives import COUNTED

POOL = "AveragePool<kernel_shape=[1,1]>"
MIDDLE, FLAT, MIRROR, ENDS = perm("0213"), perm("10"), perm("0321"), perm("2103")
WHEEL, UNWHEEL = perm("201"), perm("120")

NHWC_TO_NHWC = "(float[1,2,3,4] x) => (float[1,2,3,4] y)"
NCHW_TO_NCHW = "(float[1,2,5,5] x) => (float[1,2,5,5] y)"
SQUARE = "(float[10,2,3,5] x) => "
TWO_RELUS = f"a = {OUT}(x) b = {OUT}(x) c = Relu(a) d = Relu(b) e = Concat<axis=3>(c, d)"
RESIDUAL = f"""a = {FLAT}(x) b = {FLAT}(a) m = ReduceMean<keepdims=1>(b, one)
    c = {FLAT}(m) y = Add(a, c)"""
SKIP = f"a = {BACK}(x) b = Relu(a) c = {OUT}(b) d = Relu(c) e = {BACK}(d) f = Add(b, e)"

COREMLTOOLS = {
    "pair": Case(0, "(float[10,20] x) => (float[10,20] y)", f"a = {FLAT}(x) y = {FLAT}(a)"),
    "pair, relu": Case(
        0, "(float[10,20] x) => (float[10,20] y)", f"a = {FLAT}(x) b = {FLAT}(a) y = Relu(b)"
    ),
    "chain": Case(
        0, NHWC_TO_NHWC, f"a = {BACK}(x) b = Relu(a) c = Log(b) d = {OUT}(c) y = Relu(d)"
    ),
    "chain with identity": Case(
        0, NHWC_TO_NHWC, f"a = {BACK}(x) b = Relu(a) c = Identity(b) d = {OUT}(c) y = Relu(d)"
    ),
    "chain to the output": Case(0, NHWC_TO_NHWC, f"a = {BACK}(x) b = Relu(a) y = {OUT}(b)"),
    "output in between": Case(
        1,
        "(float[1,2,3,4] x) => (float[1,2,3,4] y, float[1,4,2,3] b)",
        f"a = {BACK}(x) b = Relu(a) c = Log(b) d = {OUT}(c) y = Relu(d)",
    ),
    "two branches": Case(
        0,
        "(float[10,2,3] x) => (float[10,2,3] y, float[10,2,3] z)",
        f"a = {SWAP}(x) b = Relu(a) c = Relu(a) y = {SWAP}(b) d = Log(c) z = {SWAP}(d)",
    ),
    "partial 0": Case(
        1,
        f"{SQUARE} (float[10,3,5,2] y, float[10,2,3,5] z)",
        f"a = {OUT}(x) b = Relu(a) c = Relu(a) y = {POOL}(b) d = Log(c) z = {BACK}(d)",
    ),
    "partial 1": Case(
        2,
        f"{SQUARE} (float[10,2,3,5] y, float[10,2,3,5] z)",
        f"a = {MIDDLE}(x) b = Relu(a) c = {POOL}(a) y = {MIDDLE}(b) d = Log(c) z = {MIDDLE}(d)",
    ),
    "partial 2": Case(
        2,
        f"{SQUARE} (float[10,2,3,5] y, float[10,2,3,5] z, float[10,3,2,5] v, float[10,3,2,5] w)",
        f"""r = Relu(x) a = {MIDDLE}(r) y = {MIDDLE}(a) b = Relu(a) z = {MIDDLE}(b)
            v = {POOL}(b) w = {POOL}(b)""",
    ),
    "partial 3": Case(
        1,
        f"{SQUARE} (float[10,2,3,5] y, float[10,3,2,5] z)",
        f"r = Relu(x) a = {MIDDLE}(r) y = {MIDDLE}(a) z = Relu(a)",
    ),
    "partial 4": Case(
        2,
        f"{SQUARE} (float[10,2,3,5] y, float[10,3,2,5] z)",
        f"r = Relu(x) z = {MIDDLE}(r) y = {MIDDLE}(z)",
    ),
    "more to materialise": Case(
        2,
        f"{SQUARE} (float[10,2,3,5] y, float[10,3,2,5] z, float[10,3,2,5] w)",
        f"""r = Relu(x) a = {MIDDLE}(r) b = Relu(a) y = {MIDDLE}(b) c = Relu(b)
            z = {POOL}(c) w = {POOL}(b)""",
    ),
    "axis": Case(
        0,
        "(float[10,2,3] x) => (float[10,2,3] y, float[10,1,3] z)",
        f"""a = {SWAP}(x) b = Relu(a) m = ReduceMean<keepdims=1>(a, two) y = {SWAP}(b)
            d = Log(m) z = {SWAP}(d)""",
        "int64[1] two = {2}",
        exact=False,
    ),
    "pad reflect, any order": Case(
        2,
        "(float[2,5,6,3] x) => (float[2,8,13,3] y)",
        f'a = {BACK}(x) b = Pad<mode="reflect">(a, p) c = Log(b) y = {OUT}(c)',
        "int64[8] p = {0,0,1,3,0,0,2,4}",
    ),
    "pad reflect, last two": Case(
        0,
        "(float[2,3,6,5] x) => (float[2,3,13,8] y)",
        f'a = {perm("0132")}(x) b = Pad<mode="reflect">(a, p) c = Log(b) y = {perm("0132")}(c)',
        "int64[8] p = {0,0,1,3,0,0,2,4}",
    ),
    "pad constant": Case(
        0,
        "(float[11,2,3,6] x) => (float[11,5,10,6] y)",
        f"a = {BACK}(x) b = Pad(a, p, three) c = Log(b) y = {OUT}(c)",
        "int64[8] p = {0,0,1,3,0,0,2,4}, float three = {3}",
    ),
    "add vector": Case(
        0, NCHW_TO_NCHW, f"a = {OUT}(x) b = Add(a, k) y = {BACK}(b)", "float[2] k = {10,100}"
    ),
    "add scalar": Case(
        0, NCHW_TO_NCHW, f"a = {OUT}(x) b = Add(k, a) y = {BACK}(b)", "float k = {5}"
    ),
    "add of two, one by relu": Case(
        0, NCHW_TO_NCHW, f"a = {OUT}(x) r = Relu(x) b = {OUT}(r) c = Add(a, b) y = {BACK}(c)"
    ),
    "add of two": Case(0, NCHW_TO_NCHW, f"a = {OUT}(x) b = {OUT}(x) c = Add(a, b) y = {BACK}(c)"),
    "concat 0": Case(0, "(float[1,2,5,5] x) => (float[1,4,5,5] y)", f"{TWO_RELUS} y = {BACK}(e)"),
    "concat 1": Case(
        1,
        "(float[1,2,5,5] x) => (float[1,4,5,5] y, float[1,5,5,2] z)",
        f"{TWO_RELUS} y = {BACK}(e) z = {POOL}(d)",
    ),
    "concat 2": Case(
        1,
        "(float[1,2,5,5] x) => (float[1,4,5,5] y, float[1,5,5,2] z)",
        f"{TWO_RELUS} y = {BACK}(e) z = Relu(d)",
    ),
    "concat 3": Case(
        1,
        "(float[1,2,5,5] x) => (float[1,4,5,5] y, float[1,5,5,2] d)",
        f"{TWO_RELUS} y = {BACK}(e)",
    ),
    "concat 4": Case(
        0,
        "(float[1,2,5,5] x) => (float[1,4,5,5] y, float[1,2,5,5] z)",
        f"{TWO_RELUS} y = {BACK}(e) z = {BACK}(d)",
    ),
    "concat 5": Case(
        0,
        "(float[3,4,2] x) => (float[3,6,2] y)",
        f"a = {WHEEL}(x) b = Concat<axis=2>(a, k) y = {UNWHEEL}(b)",
        "float[2,3,2] k = {0,1,2,3,4,5,6,7,8,9,10,11}",
    ),
    "concat 6": Case(
        2,
        """(float[10,20,30] x, float[30,10,20] v) => (float[90,10,20] y, float[10,20,30] z,
            float[10,20,30] w, float[10,20,30] u)""",
        f"""a = {WHEEL}(x) b = Relu(a) c = Relu(a) d = Relu(a) e = Relu(a) f = Relu(a)
            y = Concat<axis=0>(b, c, v) z = {UNWHEEL}(d) w = {UNWHEEL}(e) u = {UNWHEEL}(f)""",
    ),
    "split 0": Case(
        0,
        "(float[1,4,5,6] x) => (float[1,4,5,3] y, float[1,4,5,3] z)",
        f"""a = {MIRROR}(x) b = Relu(a) c, d = Split<axis=1, num_outputs=2>(b)
            y = {MIRROR}(c) z = {MIRROR}(d)""",
    ),
    "split 1": Case(
        0,
        "(float[1,4,5,6] x) => (" + ", ".join(f"float[1,4,5,1] y{i}" for i in range(6)) + ")",
        f"a = {MIRROR}(x) b = Relu(a) c0, c1, c2, c3, c4, c5 = Split<axis=1, num_outputs=6>(b) "
        + " ".join(f"y{i} = {MIRROR}(c{i})" for i in range(6)),
    ),
    "split 2": Case(
        0,
        "(float[1,4,5,6] x) => (float[1,4,5,6] y)",
        f"""a = {MIRROR}(x) b, c = Split<axis=1, num_outputs=2>(a) d = Relu(b)
            e = Concat<axis=1>(d, c) y = {MIRROR}(e)""",
    ),
    "skip 0": Case(
        1, "(float[1,5,5,3] x) => (float[1,3,5,5] y)", f"{SKIP} g = Relu(f) y = {POOL}(g)"
    ),
    "skip 1": Case(
        0,
        "(float[1,5,5,3] x) => (float[1,5,5,3] y)",
        f"{SKIP} g = {OUT}(f) h = Relu(g) y = {POOL}(h)",
    ),
    "residual": Case(
        1, "(float[2,5] x) => (float[5,2] y)", RESIDUAL, "int64[1] one = {1}", exact=False
    ),
    "residual with two outputs": Case(
        2,
        "(float[2,5] x) => (float[5,2] y, float[5,2] z)",
        f"{RESIDUAL} z = Relu(y)",
        "int64[1] one = {1}",
        exact=False,
    ),
    "output reused": Case(
        1,
        "(float[2,5] x) => (float[5,2] y, float[2,5] z)",
        f"a = {FLAT}(x) y = Relu(a) z = {FLAT}(y)",
    ),
    "double output": Case(
        0,
        "(float[1,2,5,5] x) => (float[1,2,5,5] y, float[1,2,5,5] z)",
        f"a = {OUT}(x) b = Relu(a) c = Add(a, b) y = {BACK}(c) z = {BACK}(c)",
    ),
    "add with unit axes": Case(
        0,
        "(float[1,4,3,2] x) => (float[1,4,3,2] y)",
        f"a = {BACK}(x) b = Add(a, k) c = {OUT}(b) y = Relu(c)",
        "float[1,1,1,3] k = {1,2,3}",
    ),
    "add matrix": Case(
        0,
        "(float[1,4,3,2] x) => (float[1,4,3,2] y)",
        f"a = {BACK}(x) b = Add(a, k) c = {OUT}(b) y = Relu(c)",
        "float[4,3] k = {0,1,2,3,4,5,6,7,8,9,10,11}",
    ),
    "add run-time vector": Case(
        0,
        "(float[1,4,3,2] x, float[3] v) => (float[1,4,3,2] y)",
        f"a = {BACK}(x) b = Add(a, v) c = {OUT}(b) y = Relu(c)",
    ),
    "add run-time unit axes": Case(
        0,
        "(float[5,3,4,2] x, float[3,1,2] v) => (float[5,3,4,2] y)",
        f"a = {ENDS}(x) b = Add(a, v) c = {ENDS}(b) y = Relu(c)",
    ),
    "add run-time unit axes, symbolic": Case(
        0,
        "(float[N,3,4,2] x, float[3,1,2] v) => (float[N,3,4,2] y)",
        f"a = {ENDS}(x) b = Add(a, v) c = {ENDS}(b) y = Relu(c)",
    ),
    "add run-time unknown": Case(
        2,
        "(float[1,3,4,2] x, float[3,M,2] v) => (float[M,3,4,2] y)",
        f"a = {ENDS}(x) b = Add(a, v) c = {ENDS}(b) y = Relu(c)",
    ),
    "add run-time matrix": Case(
        2,
        "(float[5,3,4,2] x, float[3,4] v) => (float[5,3,4,2] y)",
        f"a = {BACK}(x) b = Add(a, v) c = {OUT}(b) y = Relu(c)",
    ),
    "nothing to do": Case(
        0,
        "(float[2,2,1,1] x) => (float[2,2,1,1] y, float[2,2,1,1] z)",
        "y = Identity(x) z = Identity(x)",
    ),
}


@pytest.mark.parametrize("objective", COUNTED, ids=lambda o: str(o.value))
@pytest.mark.parametrize("name", COREMLTOOLS)
def test_no_more_than_coremltools(name: str, objective: Objective) -> None:
    assert_no_more(COREMLTOOLS[name], objective)
