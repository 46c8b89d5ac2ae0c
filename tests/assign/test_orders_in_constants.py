"""Orders end in constants: weights take up the order of the features they are applied to."""

from __future__ import annotations

import pytest

from tests.rewrite.rewriting import assert_kept, assert_same_numbers, parse, rewritten, transposes

TO_NHWC = "Transpose<perm=[0,2,3,1]>"
FEATURES = 2 * 3 * 4
WEIGHT = f"float[{FEATURES},5] w = {{{','.join(str(i % 13 - 6) for i in range(FEATURES * 5))}}}"
TRANSPOSED = f"float[5,{FEATURES}] w = {{{','.join(str(i % 13 - 6) for i in range(FEATURES * 5))}}}"
VECTOR = f"float[{FEATURES}] v = {{{','.join(str(i % 11) for i in range(FEATURES))}}}"
ROW = f"float[1,{FEATURES}] r = {{{','.join(str(i % 7) for i in range(FEATURES))}}}"
ONE = "float[1] one = {2}"


def body(*lines: str, batch: str = "N", constants: str = WEIGHT, outputs: str = "") -> str:
    written = "\n".join(lines)
    return f"""g (float[{batch},2,3,4] x) => (float[{batch},5] y{outputs}) <{constants}> {{
        t = {TO_NHWC}(x)
        {written}
    }}"""


def assert_reordered(text: str) -> None:
    """No Transpose is left, and small integers are summed exactly in any order."""
    given = parse(text)
    result = rewritten(given)
    assert transposes(result) == 0
    assert_same_numbers(given, result, exact=True)


@pytest.mark.parametrize("batch", ["N", "3"])
@pytest.mark.parametrize(
    "merge",
    [
        "f = Flatten(t)",
        f"f = Reshape<allowzero=0>(t, s{FEATURES})",
        "f = Reshape(t, rest)",
        "f = Reshape(t, copied)",
    ],
)
def test_merged_features(merge: str, batch: str) -> None:
    shapes = (
        f"int64[2] s{FEATURES} = {{-1,{FEATURES}}}, int64[2] rest = {{0,-1}}, "
        f"int64[2] copied = {{0,{FEATURES}}}"
    )
    constants = f"{WEIGHT}, {shapes}"
    assert_reordered(body(merge, "y = MatMul(f, w)", batch=batch, constants=constants))


@pytest.mark.parametrize(
    ("product", "constants"),
    [
        ("y = MatMul(f, w)", WEIGHT),
        ("y = Gemm(f, w)", WEIGHT),
        ("y = Gemm<transB=1, alpha=2.0>(f, w)", TRANSPOSED),
        ("y = Gemm(f, w, c)", f"{WEIGHT}, float[5] c = {{1,2,3,4,5}}"),
    ],
)
def test_products_that_sum_features(product: str, constants: str) -> None:
    assert_reordered(body("f = Flatten(t)", product, constants=constants))


def test_what_is_between_is_reordered_too() -> None:
    constants = f"{WEIGHT}, {VECTOR}, {ROW}, {ONE}"
    assert_reordered(
        body(
            "f = Flatten(t)",
            "a = Relu(f)",
            "b = Add(v, a)",
            "c = Mul(b, r)",
            "d = Sub(one, c)",
            "e = Sub(d, v)",
            "y = MatMul(e, w)",
            constants=constants,
        )
    )


@pytest.mark.parametrize(
    ("lines", "outputs"),
    [
        (["f = Flatten(t)", "y = MatMul(f, w)"], f", float[N,{FEATURES}] f"),
        (["f = Flatten(t)", "y = MatMul(f, w)", "z = Neg(f)"], f", float[N,{FEATURES}] z"),
        (["f = Flatten(t)", "y = MatMul(f, w)"], ", float[N,3,4,2] t"),
        (["f = Flatten(t)", "c = CumSum(f, axis)", "y = MatMul(c, w)"], ""),
        (["f = Flatten(t)", "a = ArgMax<axis=1>(f)", "g = Cast<to=1>(a)", "y = Add(g, five)"], ""),
    ],
    ids=["an output", "another reader", "a transposed output", "a running sum", "a place"],
)
def test_features_that_something_else_reads_stay(lines: list[str], outputs: str) -> None:
    constants = f"{WEIGHT}, int64 axis = {{1}}, float[5] five = {{1,2,3,4,5}}"
    assert_kept(body(*lines, outputs=outputs, constants=constants))


PARAMETERS = ", ".join(
    f"float[{FEATURES}] {name} = {{{','.join(str(1 + (i * step) % 5) for i in range(FEATURES))}}}"
    for step, name in enumerate(("scale", "shift", "mean", "variance"), 1)
)
DEQUANTISED = ("b = DequantizeLinear<axis=1>(a, scale)", "y = MatMul(b, w)")


@pytest.mark.parametrize(
    "lines",
    [
        ["a = Softmax(f)", "y = MatMul(a, w)"],
        ["a = Mul(f, f)", "y = MatMul(a, w)"],
        ["a = BatchNormalization(f, scale, shift, mean, variance)", "y = MatMul(a, w)"],
        ["a = LayerNormalization(f, scale, shift)", "y = Gemm(a, w)"],
        ["a, b = Dropout(f)", "y = MatMul(a, w)"],
        ["a = QuantizeLinear<axis=1>(f, scale)", *DEQUANTISED],
        ["a = Reshape(f, split)", "b = Relu(a)", "c = Reshape(b, merged)", "y = MatMul(c, w)"],
        ["a = Unsqueeze(f, last)", "b = Squeeze(a, last)", "y = MatMul(b, w)"],
        ["a = Reshape(f, image)", "c = Conv(a, filter)", "y = Flatten(c)"],
        ["m = MatMul(f, w)", "g = Gemm(f, w)", "y = Add(m, g)"],
        ["m = ReduceMax(f, last)", "g = MatMul(f, w)", "y = Add(m, g)"],
    ],
    ids=lambda lines: " ".join(line.split("(")[0].split("= ")[1] for line in lines),
)
def test_operators_that_treat_features_alike(lines: list[str]) -> None:
    shapes = f"int64[3] split = {{0,{FEATURES},1}}, int64[2] merged = {{0,-1}}"
    shapes += f", int64[4] image = {{0,{FEATURES},1,1}}, int64[1] last = {{1}}"
    values = ",".join(str(i % 7 - 3) for i in range(5 * FEATURES))
    filters = f"float[5,{FEATURES},1,1] filter = {{{values}}}"
    constants = ", ".join((WEIGHT, PARAMETERS, shapes, filters))
    given = parse(body("f = Flatten(t)", *lines, constants=constants))
    result = rewritten(given)
    assert transposes(result) == 0
    assert_same_numbers(given, result, exact=False)


def test_features_of_several_sources() -> None:
    """Each part of a Concat has an order of its own, which the rows of the weight follow."""
    rows = 2 * FEATURES + 3
    weight = f"float[{rows},5] w = {{{','.join(str(i % 9 - 4) for i in range(rows * 5))}}}"
    assert_reordered(
        f"""g (float[N,2,3,4] x, float[N,4,2,3] z, float[N,3] plain) => (float[N,5] y)
            <{weight}> {{
            t = {TO_NHWC}(x)
            f = Flatten(t)
            u = Transpose<perm=[0,3,1,2]>(z)
            v = Flatten(u)
            r = Relu(v)
            c = Concat<axis=1>(f, plain, r)
            y = MatMul(c, w)
        }}"""
    )


def test_channels_that_are_shuffled_before_a_convolution() -> None:
    """What ShuffleNet does, where nothing splits the channels again."""
    values = ",".join(str(i % 5 - 2) for i in range(4 * 6))
    assert_reordered(
        f"""g (float[N,6,2,2] x) => (float[N,4,2,2] y)
            <float[4,6,1,1] w = {{{values}}}, int64[5] apart = {{0,2,3,2,2}},
             int64[4] together = {{0,6,2,2}}> {{
            a = Reshape(x, apart)
            b = Transpose<perm=[0,2,1,3,4]>(a)
            c = Reshape(b, together)
            d = Relu(c)
            y = Conv(d, w)
        }}"""
    )


def test_features_that_are_split_in_another_order() -> None:
    """The mirror image: the columns of the weight follow what is made of its result."""
    values = ",".join(str(i % 13 - 6) for i in range(5 * FEATURES))
    bias = ",".join(str(i) for i in range(FEATURES))
    assert_reordered(
        f"""g (float[N,5] x) => (float[N,3,4,2] y)
            <float[5,{FEATURES}] w = {{{values}}}, float[{FEATURES}] b = {{{bias}}},
             int64[4] image = {{0,2,3,4}}> {{
            f = Gemm(x, w, b)
            r = Relu(f)
            i = Reshape(r, image)
            y = {TO_NHWC}(i)
        }}"""
    )


def test_weights_at_run_time_stay() -> None:
    assert_kept(
        f"""g (float[N,2,3,4] x, float[{FEATURES},5] w) => (float[N,5] y) {{
            t = {TO_NHWC}(x)
            f = Flatten(t)
            y = MatMul(f, w)
        }}"""
    )


def test_features_of_unknown_length_stay() -> None:
    assert_kept(
        f"""g (float[N,2,H,4] x) => (float[N,5] y) <{WEIGHT}> {{
            t = {TO_NHWC}(x)
            f = Flatten(t)
            y = MatMul(f, w)
        }}"""
    )


def test_a_batch_that_moves_stays() -> None:
    assert_kept(
        f"""g (float[2,N,3,4] x) => (float[N,5] y) <{WEIGHT}> {{
            t = Transpose<perm=[1,0,2,3]>(x)
            f = Flatten(t)
            y = MatMul(f, w)
        }}"""
    )


def test_rows_that_are_features_stay() -> None:
    """What is transposed again is summed over the batch, not over the features."""
    values = ",".join(str(i % 5) for i in range(FEATURES * 5))
    assert_kept(
        f"""g (float[{FEATURES},2,3,4] x) => (float[{FEATURES},5] y)
            <float[{FEATURES},5] w = {{{values}}}> {{
            t = {TO_NHWC}(x)
            f = Flatten(t)
            y = Gemm<transA=1>(f, w)
        }}"""
    )
