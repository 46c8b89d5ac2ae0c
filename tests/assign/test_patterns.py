"""Small graphs on which other optimisers stop early, and the least that can be left of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from relayout.ops.measure import Objective
from tests.assign.layouting import assert_layouts
from tests.objectives import COUNTED

OBJECTIVES = COUNTED
TO_NCHW = "Transpose<perm=[0,3,1,2]>"
TO_NHWC = "Transpose<perm=[0,2,3,1]>"


@dataclass(frozen=True, slots=True)
class Dims:
    """The lengths of the axes of an image, as they stand in ONNX text."""

    n: str
    h: str
    w: str
    c: str

    @property
    def nhwc(self) -> str:
        return f"float[{self.n},{self.h},{self.w},{self.c}]"

    @property
    def nchw(self) -> str:
        return f"float[{self.n},{self.c},{self.h},{self.w}]"


DISTINCT = Dims("2", "5", "7", "3")
EQUAL = Dims("4", "4", "4", "4")
SYMBOLIC = Dims("N", "5", "7", "3")

in_every_regime = pytest.mark.parametrize(
    "dims",
    [
        pytest.param(DISTINCT, id="distinct"),
        pytest.param(EQUAL, id="equal"),
        pytest.param(SYMBOLIC, id="symbolic"),
    ],
)
by_each_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: str(o.value))


@by_each_objective
@in_every_regime
def test_an_operand_transposed_towards_its_partner(dims: Dims, objective: Objective) -> None:
    assert_layouts(
        f"""g ({dims.nhwc} x, {dims.nchw} y) => ({dims.nhwc} z) {{
            t = {TO_NCHW}(x)
            s = Add(t, y)
            z = {TO_NHWC}(s)
        }}""",
        transposes=1,
        objective=objective,
    )


@by_each_objective
@in_every_regime
@pytest.mark.parametrize("blocks", [1, 8])
def test_a_chain_of_residual_blocks(blocks: int, dims: Dims, objective: Objective) -> None:
    """The count does not grow with the length of the chain."""
    body = "\n".join(
        f"""t{i} = {TO_NCHW}(e{i})
            c{i} = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(t{i}, w)
            u{i} = {TO_NHWC}(c{i})
            a{i} = Add(u{i}, e{i})
            e{i + 1} = Relu(a{i})"""
        for i in range(blocks)
    )
    assert_layouts(
        f"""g ({dims.nhwc} x, float[{dims.c},{dims.c},3,3] w) => ({dims.nhwc} y) {{
            e0 = Identity(x)
            {body}
            y = Identity(e{blocks})
        }}""",
        transposes=2,
        objective=objective,
    )


@by_each_objective
@in_every_regime
@pytest.mark.parametrize("reader", ["Identity", "Relu"])
def test_a_transpose_that_is_there_already(reader: str, dims: Dims, objective: Objective) -> None:
    assert_layouts(
        f"""g ({dims.nhwc} x, {dims.nchw} y) => ({dims.nhwc} z, {dims.nhwc} v) {{
            t = {TO_NCHW}(x)
            s = Add(t, y)
            z = {TO_NHWC}(s)
            u = {TO_NHWC}(y)
            v = {reader}(u)
        }}""",
        transposes=1,
        objective=objective,
    )


@by_each_objective
@in_every_regime
def test_one_reader_that_needs_the_order(dims: Dims, objective: Objective) -> None:
    assert_layouts(
        f"""g ({dims.nhwc} x, float[{dims.w},8] w)
            => ({dims.nhwc} y, float[{dims.n},{dims.c},{dims.h},8] z) {{
            t = {TO_NCHW}(x)
            r = Relu(t)
            y = {TO_NHWC}(r)
            z = MatMul(t, w)
        }}""",
        transposes=1,
        objective=objective,
    )


@in_every_regime
def test_one_reader_that_narrows_what_it_reads(dims: Dims) -> None:
    """One Transpose is least by count; two small ones after the product may move fewer bytes."""
    assert_layouts(
        f"""g ({dims.nhwc} x, float[{dims.w},6] w)
            => ({dims.nhwc} y, float[{dims.n},{dims.c},{dims.h},6] z) {{
            t = {TO_NCHW}(x)
            r = Relu(t)
            y = {TO_NHWC}(r)
            z = MatMul(t, w)
        }}""",
        transposes=1,
        objective=Objective.COUNT,
    )


@by_each_objective
@in_every_regime
def test_a_transpose_that_is_an_output_too(dims: Dims, objective: Objective) -> None:
    assert_layouts(
        f"""g ({dims.nhwc} x) => ({dims.nchw} t, {dims.nhwc} y) {{
            t = {TO_NCHW}(x)
            r = Relu(t)
            y = {TO_NHWC}(r)
        }}""",
        transposes=1,
        objective=objective,
    )


@by_each_objective
@in_every_regime
def test_two_operands_that_move_together(dims: Dims, objective: Objective) -> None:
    assert_layouts(
        f"""g ({dims.nhwc} x, {dims.nhwc} y) => ({dims.nchw} z) {{
            s = {TO_NCHW}(x)
            a = Relu(s)
            t = {TO_NCHW}(y)
            b = Sigmoid(t)
            z = Add(a, b)
        }}""",
        transposes=1,
        objective=objective,
    )


def test_three_small_operands_of_a_large_concat_stay_transposed() -> None:
    """One Transpose of the result would be fewer and move 84 times as much."""
    small = 2 * 56 * 56 * 4
    assert_layouts(
        f"""g (float[1,56,56,2] a, float[1,56,56,2] b, float[1,56,56,2] c, float[1,250,56,56] d)
            => (float[1,256,56,56] y) {{
            s = {TO_NCHW}(a)
            t = {TO_NCHW}(b)
            u = {TO_NCHW}(c)
            y = Concat<axis=1>(s, t, u, d)
        }}""",
        transposes=3,
        bytes_moved=2 * 3 * small,
    )


@by_each_objective
@pytest.mark.parametrize(("rows", "columns"), [(1024, 64), (64, 64)])
def test_a_row_before_a_constant(rows: int, columns: int, objective: Objective) -> None:
    """The row moves no data, and the constant is transposed at compile time."""
    values = ",".join(map(str, range(rows * columns)))
    assert_layouts(
        f"""g (float[1,{columns}] x) => (float[{columns},{rows + 1}] y)
            <float[{rows},{columns}] k = {{{values}}}> {{
            c = Concat<axis=0>(x, k)
            y = Transpose<perm=[1,0]>(c)
        }}""",
        transposes=0,
        objective=objective,
    )


@by_each_objective
@pytest.mark.parametrize(
    ("shape", "transposed", "size"),
    [
        ("32,32,3", "3,32,32", 32 * 32 * 3),
        ("16,16,16", "16,16,16", 16 * 16 * 16),
        ("N,32,3", "3,N,32", 32 * 32 * 3),
    ],
)
def test_the_narrow_side_of_a_cast(
    shape: str, transposed: str, size: int, objective: Objective
) -> None:
    assert_layouts(
        f"""g (uint8[{shape}] x) => (float[{transposed}] y) {{
            f = Cast<to=1>(x)
            y = Transpose<perm=[2,0,1]>(f)
        }}""",
        transposes=1,
        bytes_moved=2 * size,
        objective=objective,
    )


@by_each_objective
@pytest.mark.parametrize("batch", ["1", "N"])
def test_a_tile_between_transposes(batch: str, objective: Objective) -> None:
    images = 1 if batch == "1" else 32
    assert_layouts(
        f"""g (float[{batch},16,16,16] x, float[{batch},16,256,256] y)
            => (float[{batch},256,256,16] z) <int64[4] repeats = {{1,1,16,16}}> {{
            t = {TO_NCHW}(x)
            r = Tile(t, repeats)
            s = Add(r, y)
            z = {TO_NHWC}(s)
        }}""",
        transposes=1,
        bytes_moved=2 * images * 16 * 256 * 256 * 4,
        objective=objective,
    )


@pytest.mark.parametrize(
    ("n", "h", "w", "leg"),
    [("1", 4, 8, 3), ("16", 16, 16, 2), ("N", 4, 8, 3)],
    ids=["distinct", "equal", "symbolic"],
)
@pytest.mark.parametrize("kept", [0, 3, 7])
def test_legs_of_a_split_transposed_as_one(n: str, h: int, w: int, leg: int, kept: int) -> None:
    """Seven legs are needed in the other order: one Transpose for each run that they form."""
    legs = [f"l{i}" for i in range(8)]
    convolved = [i for i in range(8) if i != kept]
    body = "\n".join(f"y{i} = Conv(l{i}, w{i})" for i in convolved)
    weights = ", ".join(f"float[2,{leg},1,1] w{i}" for i in convolved)
    results = ", ".join(f"float[{n},2,{h},{w}] y{i}" for i in convolved)
    images = 32 if n == "N" else int(n)
    assert_layouts(
        f"""g (float[{n},{h},{w},{8 * leg}] x, {weights})
            => (float[{n},{h},{w},{leg}] y, {results}) {{
            t = {TO_NCHW}(x)
            {", ".join(legs)} = Split<axis=1, num_outputs=8>(t)
            y = {TO_NHWC}(l{kept})
            {body}
        }}""",
        transposes=1 if kept in {0, 7} else 2,
        bytes_moved=2 * 7 * images * h * w * leg * 4,
    )


@by_each_objective
@pytest.mark.parametrize("shape", ["2,3,5", "4,4,4", "N,3,5"])
@pytest.mark.parametrize("between", ["", "Relu"])
def test_a_transpose_that_names_no_order(between: str, shape: str, objective: Objective) -> None:
    assert_layouts(
        f"""g (float[{shape}] x) => (float[{shape}] y) {{
            t = Transpose(x)
            {"r = Relu(t)" if between else ""}
            y = Transpose({"r" if between else "t"})
        }}""",
        transposes=0,
        objective=objective,
    )


@by_each_objective
@pytest.mark.parametrize(
    ("shape", "perm", "result"),
    [
        ("1,28,28,1", "0,1,2,3", "1,28,28,1"),
        ("1,28,28,1", "0,3,1,2", "1,1,28,28"),
        ("4,4,4,4", "0,1,2,3", "4,4,4,4"),
        ("N,28,28,1", "0,3,1,2", "N,1,28,28"),
    ],
)
def test_a_transpose_that_moves_nothing(
    shape: str, perm: str, result: str, objective: Objective
) -> None:
    assert_layouts(
        f"""g (float[{shape}] x) => (float[{result}] y) {{
            r = Relu(x)
            t = Transpose<perm=[{perm}]>(r)
            y = Relu(t)
        }}""",
        transposes=0,
        objective=objective,
    )


AXIS_OPERATORS = {
    "Expand": ("Expand(t, target)", "int64[4] target = {1,1,1,1}"),
    "CumSum": ("CumSum(t, axis)", "int64 axis = {1}"),
    "LpNormalization": ("LpNormalization<axis=1>(t)", ""),
    "Gather": ("Gather<axis=1>(t, indices)", "int64[3] indices = {2,0,1}"),
}


@by_each_objective
@in_every_regime
@pytest.mark.parametrize("operator", AXIS_OPERATORS)
def test_an_operator_along_one_axis(operator: str, dims: Dims, objective: Objective) -> None:
    call, initialiser = AXIS_OPERATORS[operator]
    channels = "3" if operator == "Gather" else dims.c
    result = Dims(dims.n, dims.h, dims.w, channels)
    assert_layouts(
        f"""g ({dims.nhwc} x) => ({result.nhwc} y) <{initialiser}> {{
            t = {TO_NCHW}(x)
            r = {call}
            y = {TO_NHWC}(r)
        }}""",
        transposes=0,
        objective=objective,
    )


CHANNEL_OPERATORS = {
    "BatchNormalization": "BatchNormalization(t, scale, bias, mean, variance)",
    "InstanceNormalization": "InstanceNormalization(t, scale, bias)",
    "GlobalAveragePool": "GlobalAveragePool(t)",
}


@by_each_objective
@in_every_regime
@pytest.mark.parametrize("operator", CHANNEL_OPERATORS)
def test_an_operator_with_a_channel_axis(operator: str, dims: Dims, objective: Objective) -> None:
    """What stands for it in the other order is equal up to rounding.

    The nodes that stand for InstanceNormalization pass over the tensor four times more than it
    does, which is twice as much as two Transposes: they pay only where Transposes are counted.
    """
    is_dear = operator == "InstanceNormalization" and objective is Objective.BYTES
    is_pool = operator == "GlobalAveragePool"
    result = Dims(dims.n, "1", "1", dims.c) if is_pool else dims
    ramp = ",".join(str(i + 1) for i in range(int(dims.c)))
    vectors = ", ".join(
        f"float[{dims.c}] {name} = {{{ramp}}}" for name in ("scale", "bias", "mean", "variance")
    )
    assert_layouts(
        f"""g ({dims.nhwc} x) => ({result.nhwc} y) <{vectors}> {{
            t = {TO_NCHW}(x)
            r = {CHANNEL_OPERATORS[operator]}
            y = {TO_NHWC}(r)
        }}""",
        transposes=2 if is_dear else 0,
        objective=objective,
        exact=False,
    )


@by_each_objective
@in_every_regime
def test_a_convolution_between_swapped_spatial_axes(dims: Dims, objective: Objective) -> None:
    values = ",".join(str(i % 7) for i in range(2 * int(dims.c) * 3 * 2))
    swapped = "Transpose<perm=[0,1,3,2]>"
    assert_layouts(
        f"""g ({dims.nchw} x) => (float[{dims.n},2,{dims.h},{(int(dims.w) - 1) // 2 + 1}] y)
            <float[2,{dims.c},3,2] w = {{{values}}}> {{
            t = {swapped}(x)
            c = Conv<kernel_shape=[3,2], pads=[1,0,1,1], strides=[2,1]>(t, w)
            y = {swapped}(c)
        }}""",
        transposes=0,
        objective=objective,
        exact=False,
    )
