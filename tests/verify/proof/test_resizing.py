"""Products before and after a Resize are one function; those that nearly are, are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.verify.proof.cases import Array, Pair

X, Z = "float[1,3,2,3] x", "float[1,2,4,6] z"
BOTH = f"{X}, {Z}"


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


HELD = {
    "twice": np.array([1, 1, 2, 2], np.float32),
    "w": numbers(4, 5, 1, 1),
    "z0": numbers(4, 5, 1, 1)[:, :2],
    "x0": numbers(4, 5, 1, 1)[:, 2:],
    "v": numbers(4, 3, 1, 1),
    "b": numbers(4),
}
JOINED = "r = Resize<MODE>(x, , twice) c = Concat<axis = 1>(z, r) y = Conv(c, w, b)"
APART = "p = Conv(x, x0) q = Resize<MODE>(p, , twice) a = Conv(z, z0, b) y = Add(a, q)"
LINEAR, NEAREST = (
    'mode = "linear"',
    'mode = "nearest", coordinate_transformation_mode = "asymmetric"',
)
CUBIC = 'mode = "cubic", exclude_outside = 1'


def pair(before: str, after: str, inputs: str = BOTH, mode: str = LINEAR, **held: Array) -> Pair:
    one, other = (text.replace("MODE", mode) for text in (before, after))
    return Pair(inputs, one, other, constants={**HELD, **held})


EQUAL = {
    "a part": pair(JOINED, APART),
    "nearest": pair(JOINED, APART, mode=NEAREST),
    "cubic": pair(JOINED, APART, mode=CUBIC),
    "a bias before it": pair(
        JOINED,
        "p = Conv(x, x0, b) q = Resize<MODE>(p, , twice) a = Conv(z, z0) y = Add(a, q)",
    ),
    "alone": pair(
        "r = Resize<MODE>(x, , twice) y = Conv(r, v, b)",
        "p = Conv(x, v, b) y = Resize<MODE>(p, , twice)",
        X,
    ),
    "by a product of matrices": pair(
        "r = Resize<MODE>(x, , twice) t = Transpose<perm = [0,2,3,1]>(r) y = MatMul(t, m)",
        """t = Transpose<perm = [0,2,3,1]>(x) p = MatMul(t, m) u = Transpose<perm = [0,3,1,2]>(p)
        q = Resize<MODE>(u, , twice) y = Transpose<perm = [0,2,3,1]>(q)""",
        X,
        m=numbers(3, 4),
    ),
    "channels last": pair(
        """r = Resize<MODE>(x, , twice) t = Transpose<perm = [0,2,3,1]>(r)
        s = Transpose<perm = [0,2,3,1]>(z) c = Concat<axis = 3>(s, t)
        u = Transpose<perm = [0,3,1,2]>(c) y = Conv(u, w, b)""",
        APART,
    ),
    "twice": pair(
        "r = Resize<MODE>(x, , twice) s = Resize<MODE>(r, , twice) y = Conv(s, v, b)",
        "p = Conv(x, v, b) q = Resize<MODE>(p, , twice) y = Resize<MODE>(q, , twice)",
        X,
    ),
    "after a sum": pair(
        "s = Add(x, k) r = Resize<MODE>(s, , twice) y = Conv(r, v, b)",
        "s = Add(x, k) p = Conv(s, v, b) y = Resize<MODE>(p, , twice)",
        X,
        k=numbers(3, 1, 1),
    ),
    "parts after sums": pair(
        JOINED.replace("r =", "s = Add(x, k) r =").replace("(x, ,", "(s, ,"),
        APART.replace("p =", "s = Add(x, k) p =").replace("(x, x0)", "(s, x0)"),
        k=numbers(3, 1, 1),
    ),
    "to the same size": pair(
        "r = Resize<MODE>(x, , once) y = Conv(r, v, b)",
        "y = Conv(x, v, b)",
        X,
        once=np.ones(4, np.float32),
    ),
}
CHANNELS = np.array([1, 2, 1, 1], np.float32)
DIFFERENT = {
    "other weights": pair(JOINED, APART.replace("x0", "v")),
    "another part resized": pair(
        JOINED.replace("(x,", "(g,").replace("r =", "g = Relu(x) r ="),
        APART.replace("(x, x0)", "(x, x0)"),
    ),
    "another mode": pair(JOINED, APART.replace("MODE", NEAREST)),
    "another scale": pair(
        "r = Resize<MODE>(x, , twice) y = Conv(r, v)",
        "p = Conv(x, v) y = Resize<MODE>(p, , other)",
        X,
        other=np.array([1, 1, 2, 3], np.float32),
    ),
    "the bias twice": pair(JOINED, APART.replace("(x, x0)", "(x, x0, b)")),
    "no bias": pair(JOINED, APART.replace("z0, b", "z0")),
    "parts in another order": pair(JOINED.replace("(z, r)", "(r, z)"), APART),
    "axes exchanged": pair(
        JOINED,
        APART.replace(
            "q = Resize<MODE>(p", "s = Transpose<perm = [0,1,3,2]>(p) q = Resize<MODE>(s"
        ),
        "float[1,3,2,2] x, float[1,2,4,4] z",
    ),
    "channels resized": pair(
        "r = Resize<MODE>(x, , deep) y = Conv(r, d)",
        "p = Conv(x, v) y = Resize<MODE>(p, , deep)",
        X,
        deep=CHANNELS,
        d=numbers(4, 6, 1, 1),
    ),
    "a window": pair(
        "r = Resize<MODE>(x, , twice) y = Conv<pads = [0,0,1,1]>(r, k)",
        "p = Conv<pads = [0,0,1,1]>(x, k) y = Resize<MODE>(p, , twice)",
        X,
        k=numbers(4, 3, 2, 2),
    ),
    "another sum before it": pair(
        "s = Add(x, k) r = Resize<MODE>(s, , twice) y = Conv(r, v, b)",
        "p = Conv(x, v, b) r = Resize<MODE>(p, , twice) y = Add(r, l)",
        X,
        k=numbers(3, 1, 1),
        l=numbers(4, 1, 1),
    ),
    "something else between": pair(
        "r = Resize<MODE>(x, , twice) y = Conv(r, v, b)",
        "p = Conv(x, v, b) a = Relu(p) y = Resize<MODE>(a, , twice)",
        X,
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_product_may_come_before_a_resize(name: str, tmp_path: Path) -> None:
    proof = EQUAL[name].proof(tmp_path)
    assert proof.proved
    assert name == "to the same size" or proof.ledger
    first, second = EQUAL[name].results()
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_nearly_is_one_is_not_proved(name: str, tmp_path: Path) -> None:
    assert not DIFFERENT[name].proof(tmp_path).proved
    first, second = DIFFERENT[name].results()
    assert first.shape != second.shape or np.abs(first - second).max() > 1e-3
