"""Products of matrices take up Transposes of their factors and of their results."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from relayout.assign.choose import ChooseLayouts
from relayout.assign.terms import Terms
from relayout.cli.demo_model import network
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from relayout.ops.measure import Objective, measure
from relayout.optimizer.pipeline import layouts
from relayout.targets.target import ONNX, ORT, Target
from tests.assign.layouting import assert_layouts
from tests.objectives import COUNTED
from tests.ops.law import run
from tests.rewrite.rewriting import data_for, parse

OBJECTIVES = COUNTED
by_each_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: str(o.value))
on_each_target = pytest.mark.parametrize("target", [ONNX, ORT], ids=lambda target: target.name)


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def assert_runs(
    text: str, transposes: int, target: Target, objective: Objective = Objective.BYTES
) -> onnx.ModelProto:
    """The pipeline for a target leaves so many Transposes, and ONNX Runtime gives the same."""
    given = parse(text)
    loaded = load(given)
    layouts(target, ChooseLayouts(Terms(objective, target))).run(loaded.ir)
    result = to_proto(loaded)
    left = measure(load(result).ir).transposes
    assert left == transposes, onnx.printer.to_text(result)
    feeds = {value.name: data_for(value) for value in given.graph.input}
    for one, other in zip(run(given, feeds, "ort"), run(result, feeds, "ort"), strict=True):
        np.testing.assert_array_equal(other, one)
    return result


@by_each_objective
@pytest.mark.parametrize("shapes", ["5,3 3,2 2,5", "4,4 4,4 4,4", "N,3 3,2 2,N"])
def test_the_transposed_product_of_matrices(shapes: str, objective: Objective) -> None:
    left, right, result = shapes.split()
    model = assert_layouts(
        f"""g (float[{left}] a, float[{right}] b) => (float[{result}] y) {{
            m = MatMul(a, b)
            y = Transpose<perm=[1,0]>(m)
        }}""",
        transposes=0,
        objective=objective,
    )
    assert operators(model) == ["Gemm"]


@by_each_objective
@pytest.mark.parametrize("addend", ["[]", "[1]", "[2]", "[1,2]", "[5,1]", "[5,2]"])
@pytest.mark.parametrize("flag", [0, 1])
def test_the_transposed_gemm_with_an_addend(addend: str, flag: int, objective: Objective) -> None:
    left = "3,5" if flag else "5,3"
    size = int(np.prod([int(length) for length in addend.strip("[]").split(",") if length]))
    assert_layouts(
        f"""g (float[{left}] a, float[3,2] b) => (float[2,5] y)
            <float{"" if addend == "[]" else addend} c = {{{",".join(map(str, range(size)))}}}> {{
            m = Gemm<transA={flag}>(a, b, c)
            y = Transpose<perm=[1,0]>(m)
        }}""",
        transposes=0,
        objective=objective,
    )


@by_each_objective
def test_the_addend_of_a_transposed_gemm_at_run_time(objective: Objective) -> None:
    """A vector becomes a column without a copy; a matrix would have to be transposed."""
    assert_layouts(
        """g (float[5,3] a, float[3,2] b, float[2] c) => (float[2,5] y) {
            m = Gemm(a, b, c)
            y = Transpose<perm=[1,0]>(m)
        }""",
        transposes=0,
        objective=objective,
    )


@by_each_objective
@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
def test_every_side_of_a_product_of_matrices(dtype: str, objective: Objective) -> None:
    assert_layouts(
        f"""g ({dtype}[3,5] a, {dtype}[2,3] b) => ({dtype}[2,5] y) {{
            s = Transpose<perm=[1,0]>(a)
            t = Transpose<perm=[1,0]>(b)
            m = MatMul(s, t)
            y = Transpose<perm=[1,0]>(m)
        }}""",
        transposes=0,
        objective=objective,
    )


@pytest.mark.parametrize(("objective", "left"), [(Objective.COUNT, 1), (Objective.BYTES, 2)])
def test_attention_scores_are_stored_as_they_are_read(objective: Objective, left: int) -> None:
    """Transposed scores are the product of the factors exchanged: one Transpose instead of two.

    But Softmax along another axis than the last copies them twice, which is more than they save.
    """
    assert_layouts(
        """g (float[2,3,4,5] q, float[2,3,4,5] k, float[2,3,6,5] v) => (float[2,3,6,5] y) {
            t = Transpose<perm=[0,1,3,2]>(q)
            m = MatMul(t, k)
            s = Softmax<axis=-1>(m)
            u = Transpose<perm=[0,1,3,2]>(s)
            y = MatMul(v, u)
        }""",
        transposes=left,
        objective=objective,
        exact=False,
    )


@by_each_objective
@on_each_target
def test_a_batch_on_a_runtime_with_flags(target: Target, objective: Objective) -> None:
    model = assert_runs(
        """g (float[2,4,5] a, float[2,5,3] b) => (float[2,3,4] y) {
            m = MatMul(a, b)
            y = Transpose<perm=[0,2,1]>(m)
        }""",
        transposes=1 if target is ONNX else 0,
        target=target,
        objective=objective,
    )
    assert ("FusedMatMul" in operators(model)) is (target is ORT)


@by_each_objective
def test_batches_stored_after_their_rows(objective: Objective) -> None:
    """Sequences in front of the batch, as in attention that was written for recurrent networks."""
    model = assert_runs(
        """g (float[4,2,3,5] q, float[6,2,3,5] k) => (float[2,3,4,6] y) {
            s = Transpose<perm=[1,2,0,3]>(q)
            t = Transpose<perm=[1,2,3,0]>(k)
            y = MatMul(s, t)
        }""",
        transposes=0,
        target=ORT,
        objective=objective,
    )
    assert operators(model) == ["FusedMatMul"]


@by_each_objective
def test_a_product_that_has_flags_already(objective: Objective) -> None:
    assert_runs(
        """g (float[2,4,5] a, float[2,5,3] b) => (float[2,3,4] y) <float[2,4,3] m> {
            s = Transpose<perm=[0,2,1]>(a)
            m = com.microsoft.FusedMatMul<transA=1, alpha=2.0>(s, b)
            y = Transpose<perm=[0,2,1]>(m)
        }""",
        transposes=0,
        target=ORT,
        objective=objective,
    )


WINDOWS = ",".join(str(i % 5 - 2) for i in range(6 * 3))


@by_each_objective
@pytest.mark.parametrize("bias", ["", ", bias"])
@pytest.mark.parametrize("batch", ["2", "N"])
def test_a_convolution_of_single_elements(batch: str, bias: str, objective: Objective) -> None:
    assert_layouts(
        f"""g (float[{batch},5,7,3] x) => (float[{batch},5,7,6] y)
            <float[6,3,1,1] w = {{{WINDOWS}}}, float[6] bias = {{1,2,3,4,5,6}}> {{
            t = Transpose<perm=[0,3,1,2]>(x)
            c = Conv(t, w{bias})
            y = Transpose<perm=[0,2,3,1]>(c)
        }}""",
        transposes=0,
        objective=objective,
    )


@by_each_objective
@pytest.mark.parametrize(
    ("stored", "there", "back", "bias"),
    [
        ("2,5,3,7", "0,2,1,3", "0,2,1,3", ", bias"),
        ("N,5,3,7", "0,2,1,3", "0,2,1,3", ", bias"),
        ("5,N,3,7", "1,2,0,3", "2,0,1,3", ", bias"),
        ("2,5,3,W", "0,2,1,3", "0,2,1,3", ", bias"),
        ("N,5,3,7,4", "0,2,1,3,4", "0,2,1,3,4", ""),
        ("N,5,7,3,4", "0,3,1,2,4", "0,2,3,1,4", ", bias"),
    ],
)
def test_what_is_stored_before_the_channels_is_the_batch(
    stored: str, there: str, back: str, bias: str, objective: Objective
) -> None:
    """A product would have its bias added to it, and reads only one axis after the channels."""
    ones = ",1" * (stored.count(",") - 1)
    given = stored.replace(",3,", ",6,")
    model = assert_layouts(
        f"""g (float[{stored}] x) => (float[{given}] y)
            <float[6,3{ones}] w = {{{WINDOWS}}}, float[6] bias = {{1,2,3,4,5,6}}> {{
            t = Transpose<perm=[{there}]>(x)
            c = Conv(t, w{bias})
            y = Transpose<perm=[{back}]>(c)
        }}""",
        transposes=0,
        objective=objective,
    )
    assert operators(model) == ["Reshape", "Conv", "Reshape"]


@by_each_objective
def test_a_batch_may_change_places_with_other_axes(objective: Objective) -> None:
    """Windows of one element do the same along all axes but that of the channels."""
    model = assert_layouts(
        f"""g (float[7,3,N,W] x) => (float[7,6,N,W] y) <float[6,3,1,1] w = {{{WINDOWS}}}> {{
            t = Transpose<perm=[2,1,3,0]>(x)
            c = Conv(t, w)
            y = Transpose<perm=[3,1,0,2]>(c)
        }}""",
        transposes=0,
        objective=objective,
    )
    assert operators(model) == ["Conv"]


@by_each_objective
@pytest.mark.parametrize(
    ("batch", "width", "bias", "wanted"),
    [
        ("2", "7", "", ["MatMul"]),
        ("N", "W", "", ["MatMul"]),
        ("N", "W", ", bias", ["MatMul", "Add"]),
    ],
)
def test_a_convolution_with_one_axis_after_the_channels_is_a_product(
    batch: str, width: str, bias: str, wanted: list[str], objective: Objective
) -> None:
    """With a bias, where no Reshape can be given its target: were W 0, what would N be?"""
    model = assert_layouts(
        f"""g (float[{batch},5,3,{width}] x) => (float[{batch},5,6,{width}] y)
            <float[6,3,1,1] w = {{{WINDOWS}}}, float[6] bias = {{1,2,3,4,5,6}}> {{
            t = Transpose<perm=[0,2,1,3]>(x)
            c = Conv(t, w{bias})
            y = Transpose<perm=[0,2,1,3]>(c)
        }}""",
        transposes=0,
        objective=objective,
    )
    assert operators(model) == wanted


@by_each_objective
@pytest.mark.parametrize(
    ("shape", "there", "back", "operator"),
    [
        ("N,3,7", "0,2,1", "0,2,1", "MatMul"),
        ("2,3,5,7", "0,2,3,1", "0,3,1,2", "Conv"),
        ("N,3,5,7,4", "0,2,3,4,1", "0,4,1,2,3", "Conv"),
    ],
)
def test_a_product_over_the_channels(
    shape: str, there: str, back: str, operator: str, objective: Objective
) -> None:
    first, _, *rest = shape.split(",")
    model = assert_layouts(
        f"""g (float[{shape}] x) => (float[{",".join([first, "6", *rest])}] y)
            <float[3,6] w = {{{WINDOWS}}}, float[6] bias = {{1,2,3,4,5,6}}> {{
            t = Transpose<perm=[{there}]>(x)
            m = MatMul(t, w)
            a = Add(m, bias)
            y = Transpose<perm=[{back}]>(a)
        }}""",
        transposes=0,
        objective=objective,
    )
    assert operators(model)[0] == operator


@by_each_objective
def test_the_demonstration_keeps_one_transpose(objective: Objective) -> None:
    loaded = load(network())
    layouts(ONNX, ChooseLayouts(Terms(objective))).run(loaded.ir)
    result = to_proto(loaded)
    assert operators(result).count("Transpose") == 1
    image = {"image": np.random.default_rng(1).normal(size=(2, 16, 16, 3)).astype(np.float32)}
    before, after = (run(model, image, "ort")[0] for model in (network(), result))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
