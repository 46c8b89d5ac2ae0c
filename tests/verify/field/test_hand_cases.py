"""Pairs of graphs whose verdict is known: what must be equal is, and what looks equal is not."""

from __future__ import annotations

import pytest

from tests.verify.field.models import status_of

SQUARE = "g (float[3,3] x, float[3,3] w) => (float[3,3] y)"
CUBE = "g (float[2,3,4] x) => (float[a,b,c] y)"
CONSTANT = "<float[2,3] w = {1, 2, 3, 4, 5, 6.5}>"
TURNED = "<float[3,2] w = {1, 4, 2, 5, 3, 6.5}>"

EQUAL = {
    "an equation of three matrices": (
        (
            "g (float[2,3] a, float[3,4] b, float[4,5] c) => (float[m,n] y)"
            '{ y = Einsum<equation="ij,jk,kl->li">(a, b, c) }'
        ),
        (
            "g (float[2,3] a, float[3,4] b, float[4,5] c) => (float[m,n] y)"
            "{ p = MatMul(a, b) q = MatMul(p, c) y = Transpose(q) }"
        ),
    ),
    "a comparison from the other side": (
        f"{SQUARE} {{ c = Less(x, w) y = Where(c, x, w) }}",
        f"{SQUARE} {{ c = Greater(w, x) d = Not(c) y = Where(d, w, x) }}",
    ),
    "operands of a symmetric function exchanged": (
        f"{SQUARE} {{ y = Max(x, w) }}",
        f"{SQUARE} {{ y = Max(w, x) }}",
    ),
    "a power as a product, and one as a root": (
        (
            f"{SQUARE} <float k = {{2.0}}, float h = {{0.5}}>"
            " { p = Pow(x, k) r = Pow(w, h) y = Add(p, r) }"
        ),
        f"{SQUARE} {{ p = Mul(x, x) r = Sqrt(w) y = Add(r, p) }}",
    ),
    "cancelling pair through Relu": (
        f"{CUBE} {{ t = Transpose<perm=[1,2,0]>(x) r = Relu(t) y = Transpose<perm=[2,0,1]>(r) }}",
        f"{CUBE} {{ y = Relu(x) }}",
    ),
    "cancelling pair through Mul": (
        f"{SQUARE} {{ t = Transpose(x) v = Transpose(w) m = Mul(t, v) y = Transpose(m) }}",
        f"{SQUARE} {{ y = Mul(w, x) }}",
    ),
    "two Transposes composed": (
        f"{CUBE} {{ t = Transpose<perm=[1,0,2]>(x) y = Transpose<perm=[0,2,1]>(t) }}",
        f"{CUBE} {{ y = Transpose<perm=[1,2,0]>(x) }}",
    ),
    "axis of Softmax remapped": (
        (
            f"{CUBE} {{ t = Transpose<perm=[0,2,1]>(x) s = Softmax<axis=1>(t)"
            " y = Transpose<perm=[0,2,1]>(s) }"
        ),
        f"{CUBE} {{ y = Softmax<axis=2>(x) }}",
    ),
    "axis of Concat remapped": (
        (
            f"{CUBE} {{ t = Transpose<perm=[2,1,0]>(x) c = Concat<axis=0>(t, t)"
            " y = Transpose<perm=[2,1,0]>(c) }"
        ),
        f"{CUBE} {{ y = Concat<axis=2>(x, x) }}",
    ),
    "product transposed": (
        f"{SQUARE} {{ p = MatMul(x, w) y = Transpose(p) }}",
        f"{SQUARE} {{ a = Transpose(w) b = Transpose(x) y = MatMul(a, b) }}",
    ),
    "Transpose as transA": (
        f"{SQUARE} {{ t = Transpose(x) y = MatMul(t, w) }}",
        f"{SQUARE} {{ y = Gemm<transA=1>(x, w) }}",
    ),
    "weight folded": (
        f"g (float[4,2] x) => (float[4,3] y) {CONSTANT} {{ y = MatMul(x, w) }}",
        f"g (float[4,2] x) => (float[4,3] y) {TURNED} {{ y = Gemm<transB=1>(x, w) }}",
    ),
    "a Transpose between Reshapes": (
        (
            "g (float[2,12] x) => (float[a,b] y) <int64[3] s = {2, 3, 4}, int64[2] f = {2, 12}>"
            "{ r = Reshape(x, s) t = Transpose<perm=[0,2,1]>(r) u = Transpose<perm=[0,2,1]>(t)"
            " y = Reshape(u, f) }"
        ),
        "g (float[2,12] x) => (float[a,b] y) { y = Identity(x) }",
    ),
    "unit axes moved by a Reshape": (
        "g (float[1,3,1,4] x) => (float[a,b,c,d] y) { y = Transpose<perm=[0,2,1,3]>(x) }",
        (
            "g (float[1,3,1,4] x) => (float[a,b,c,d] y) <int64[4] s = {1, 1, 3, 4}>"
            "{ y = Reshape(x, s) }"
        ),
    ),
    "axis of ReduceMean remapped": (
        (
            f"{CUBE} <int64[1] a = {{1}}> {{ t = Transpose<perm=[1,0,2]>(x) m = ReduceMean(t, a)"
            " y = Transpose<perm=[1,0,2]>(m) }"
        ),
        f"{CUBE} <int64[1] a = {{0}}> {{ y = ReduceMean(x, a) }}",
    ),
    "sums in another order": (
        f"{SQUARE} {{ a = Add(x, w) b = Add(a, x) y = MatMul(b, w) }}",
        f"{SQUARE} {{ a = Add(x, x) p = MatMul(a, w) q = MatMul(w, w) y = Add(p, q) }}",
    ),
    "a scale of a power of two, and neutral numbers": (
        (
            f"{SQUARE} <float h = {{0.5}}, float n = {{0.0}}> {{ p = MatMul(x, w) q = Mul(p, h)"
            " y = Add(q, n) }"
        ),
        (
            f"{SQUARE} <float h = {{0.25}}, float i = {{2.0}}> {{ a = Mul(x, h) b = Mul(w, i)"
            " y = MatMul(a, b) }"
        ),
    ),
}
DIFFERENT = {
    "the second operand of a function of two elements": (
        f"{SQUARE} {{ y = Pow(x, w) }}",
        f"{SQUARE} {{ n = Neg(w) y = Pow(x, n) }}",
    ),
    "operands of a function of two elements exchanged": (
        f"{SQUARE} {{ y = Pow(x, w) }}",
        f"{SQUARE} {{ y = Pow(w, x) }}",
    ),
    "operands of a comparison exchanged": (
        f"{SQUARE} {{ c = Less(x, w) y = Where(c, x, w) }}",
        f"{SQUARE} {{ c = Less(w, x) y = Where(c, x, w) }}",
    ),
    "broadcast along the wrong axis": (
        (
            "g (float[3,3] x, float[3] w) => (float[a,b] y)"
            "{ t = Transpose(x) s = Add(t, w) y = Transpose(s) }"
        ),
        "g (float[3,3] x, float[3] w) => (float[a,b] y) { y = Add(x, w) }",
    ),
    "axis of Softmax kept": (
        f"{SQUARE} {{ t = Transpose(x) s = Softmax<axis=0>(t) y = Transpose(s) }}",
        f"{SQUARE} {{ y = Softmax<axis=0>(x) }}",
    ),
    "operands of Concat exchanged": (
        f"{SQUARE} {{ c = Concat<axis=0>(x, w) y = Relu(c) }}",
        f"{SQUARE} {{ c = Concat<axis=0>(w, x) y = Relu(c) }}",
    ),
    "two Transposes composed the other way": (
        (
            "g (float[3,3,3] x) => (float[a,b,c] y)"
            "{ t = Transpose<perm=[1,0,2]>(x) y = Transpose<perm=[0,2,1]>(t) }"
        ),
        "g (float[3,3,3] x) => (float[a,b,c] y) { y = Transpose<perm=[2,0,1]>(x) }",
    ),
    "an identity folded as transA": (
        f"{SQUARE} {{ t = Transpose<perm=[0,1]>(x) y = MatMul(t, w) }}",
        f"{SQUARE} {{ y = Gemm<transA=1>(x, w) }}",
    ),
    "capture: x - x^T": (
        f"{SQUARE} {{ t = Transpose(x) y = Sub(x, t) }}",
        f"{SQUARE} {{ t = Transpose(x) d = Sub(x, t) y = Transpose(d) }}",
    ),
    "capture: x w x^T": (
        f"{SQUARE} {{ t = Transpose(x) p = MatMul(x, w) y = MatMul(p, t) }}",
        f"{SQUARE} {{ t = Transpose(x) p = MatMul(x, w) q = MatMul(p, t) y = Transpose(q) }}",
    ),
    "capture: the outer difference": (
        "g (float[3,1] x) => (float[a,b] y) { t = Transpose(x) y = Sub(x, t) }",
        "g (float[3,1] x) => (float[a,b] y) { t = Transpose(x) d = Sub(x, t) y = Transpose(d) }",
    ),
    "one entry of a weight": (
        f"g (float[4,2] x) => (float[4,3] y) {CONSTANT} {{ y = MatMul(x, w) }}",
        (
            f"g (float[4,2] x) => (float[4,3] y) {CONSTANT.replace('6.5', '6.25')}"
            "{ y = MatMul(x, w) }"
        ),
    ),
    "DepthToSpace by the other mode": (
        (
            "g (float[1,8,2,3] x) => (float[a,b,c,d] y)"
            '{ y = DepthToSpace<blocksize=2, mode="DCR">(x) }'
        ),
        (
            "g (float[1,8,2,3] x) => (float[a,b,c,d] y)"
            '{ y = DepthToSpace<blocksize=2, mode="CRD">(x) }'
        ),
    ),
    "padding at the other side": (
        (
            "g (float[1,1,4,4] x, float[1,1,2,2] w) => (float[a,b,c,d] y)"
            "{ y = Conv<pads=[1,0,0,1]>(x, w) }"
        ),
        (
            "g (float[1,1,4,4] x, float[1,1,2,2] w) => (float[a,b,c,d] y)"
            "{ y = Conv<pads=[0,1,1,0]>(x, w) }"
        ),
    ),
    "a window of MaxPool": (
        (
            "g (float[1,1,4,4] x) => (float[a,b,c,d] y)"
            "{ y = MaxPool<kernel_shape=[1,2], strides=[1,2]>(x) }"
        ),
        (
            "g (float[1,1,4,4] x) => (float[a,b,c,d] y)"
            "{ y = MaxPool<kernel_shape=[1,1], strides=[1,2]>(x) }"
        ),
    ),
    "functions of elements": (
        f"{SQUARE} {{ y = Sigmoid(x) }}",
        f"{SQUARE} {{ y = Tanh(x) }}",
    ),
    "an attribute of a function": (
        f"{SQUARE} {{ y = Elu<alpha=0.5>(x) }}",
        f"{SQUARE} {{ y = Elu(x) }}",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize("seed", [0, 1])
def test_equal(name: str, seed: int) -> None:
    assert status_of(*EQUAL[name], seed) == "equal"


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("seed", [0, 1])
def test_different(name: str, seed: int) -> None:
    assert status_of(*DIFFERENT[name], seed) == "differs"


@pytest.mark.parametrize("name", DIFFERENT)
def test_each_of_a_different_pair_is_equal_to_itself(name: str) -> None:
    for text in DIFFERENT[name]:
        assert status_of(text, text) == "equal"
