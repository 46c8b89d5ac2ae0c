"""What bodies compute has a type once its operands do, also where no one infers it later."""

from __future__ import annotations

import onnx
import pytest

import relayout

BODIES = {
    "a product": "a = MatMul(w, u) p = Softmax(a) b = MatMul(p, w)",
    "two products": "a = MatMul(w, u) b = MatMul(a, w)",
    "a product of a sum": "s = Add(w, w) a = MatMul(s, u) b = MatMul(a, s)",
}


@pytest.mark.parametrize("target", ["onnx", "ort", "litert", "openvino"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("minimize", ["count", "bytes"])
def test_results_of_branches_have_types(body: str, target: str, minimize: str) -> None:
    """Where a Slice begins may be replaced by a caller, and its axis is computed."""
    given = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[n,m,k,5] x, bool c, int64[1] last) => (float[p,q,r,s] y)
        <int64[1] last = {{-1}}, int64[1] end = {{-2147483648}}, int64[1] back = {{-1}},
        int64[4] form = {{1, 5, 3, 1}}> {{
            axis = Constant<value = int64[1] {{0}}>()
            w = Slice(x, last, end, axis, back)
            z = If(c) <then_branch = yes () => (float[p,q,r,s] t) {{
                t = Transpose<perm = [1, 0, 2, 3]>(w)
            }}, else_branch = no () => (float[p,q,r,s] o) {{
                u = Transpose<perm = [0, 1, 3, 2]>(w)
                {BODIES[body]}
                v = Transpose<perm = [0, 3, 1, 2]>(b)
                e = Expand(v, form)
                f = Transpose<perm = [2, 0, 3, 1]>(e)
                o = Identity(f)
            }}>
            y = MaxPool<kernel_shape = [2, 2]>(z)
        }}"""
    )
    onnx.checker.check_model(given, full_check=True)
    result = relayout.optimize(given, target=target, minimize=minimize, verify=False)
    onnx.checker.check_model(result.model, full_check=True)


ROUNDS = {
    "a product": "t = Transpose<perm = [0, 1, 3, 2]>(x) m = MatMul(x, t) q = MatMul(m, x)",
    "a softmax": """t = Transpose<perm = [0, 1, 3, 2]>(x) m = MatMul(x, t) p = Softmax<axis = 3>(m)
        q = MatMul(p, x)""",
}


@pytest.mark.parametrize("target", ["onnx", "ort", "litert", "openvino"])
@pytest.mark.parametrize("body", ROUNDS)
@pytest.mark.parametrize("minimize", ["count", "bytes"])
def test_results_of_rounds_have_types(body: str, target: str, minimize: str) -> None:
    """What a body gives back in another order is declared, what it is made of may not be."""
    given = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 15]>
        g (float[5,1,3,4] x, bool test, float[4,3,1,3,5] z) => (float[a,b,c,d,e] y) {{
            first = Transpose<perm = [1, 2, 3, 0]>(x)
            y = If(test) <then_branch = yes () => (float[4,3,1,3,5] s)
            <int64 rounds = {{3}}, bool go = {{1}}> {{
                last, stacked = Loop(rounds, go, first) <body = b (int64 i, bool c,
                    float[1,3,4,5] v) => (bool on, float[1,3,4,5] next, float[1,3,4,5] each) {{
                    {ROUNDS[body]}
                    moved = Transpose<perm = [1, 2, 3, 0]>(q)
                    next = Identity(moved)
                    each = Identity(moved)
                    on = Identity(c)
                }}>
                t0 = Transpose<perm = [1, 4, 2, 0, 3]>(stacked)
                s = Transpose<perm = [4, 3, 0, 2, 1]>(t0)
            }}, else_branch = no () => (float[4,3,1,3,5] o) {{
                o = Identity(z)
            }}>
        }}"""
    )
    onnx.checker.check_model(given, full_check=True)
    result = relayout.optimize(given, target=target, minimize=minimize, verify=False)
    onnx.checker.check_model(result.model, full_check=True)
