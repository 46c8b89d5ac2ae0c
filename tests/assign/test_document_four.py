"""Automatic NHWC: the worked examples of the document that proposes it, its mistakes put right."""

from __future__ import annotations

import onnx
import pytest

from relayout.api import count, optimize
from relayout.assign.strategies.registry import STRATEGIES
from relayout.layout.layout import NCHW, NHWC, OHWI, OIHW
from relayout.optimizer.compare import compare_strategies
from tests.assign.writing import left_by, written
from tests.rewrite.rewriting import parse
from tests.targets.networks import lenet

SIMPLIFYING = [name for name in STRATEGIES if name != "naive"]
WEIGHING = [name for name in SIMPLIFYING if name != "auto-nhwc"]
"""Those that ask what it costs to follow an operand."""
IMAGE = "float[2,3,4,5]"
WEIGHT = "float[3,3,1,1] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}"


def graph(body: str, output: str = IMAGE, inputs: str = f"{IMAGE} x", more: str = "") -> str:
    constants = ", ".join(filter(None, (WEIGHT, more)))
    return f"network ({inputs}) => ({output} y) <{constants}> {{ {body} }}"


CHAIN = graph("a = Conv(x, w) b = Relu(a) c = Conv(b, w) y = Relu(c)")


def test_the_orders_have_their_right_names() -> None:
    assert NCHW.to(NHWC).axes == OIHW.to(OHWI).axes == (0, 2, 3, 1)
    assert NHWC.to(NCHW).axes == (0, 3, 1, 2)


def test_two_convolutions_with_activations() -> None:
    assert left_by(CHAIN, "naive", *SIMPLIFYING) == [4, *[2] * len(SIMPLIFYING)]


@pytest.mark.parametrize(
    ("body", "output", "expected"),
    [
        ("y = Conv(x, w)", IMAGE, 2),
        ("y = BatchNormalization(x, s, s, s, s)", IMAGE, 2),
        ("a = BatchNormalization(x, s, s, s, s) y = Relu(a)", IMAGE, 2),
        ("y = MaxPool<kernel_shape = [2, 2]>(x)", "float[2,3,3,4]", 2),
        ("a = Conv(x, w) y = MaxPool<kernel_shape = [2, 2]>(a)", "float[2,3,3,4]", 2),
        ("a = Conv(x, w) b = Relu(a) c = Conv(x, w) d = Relu(c) y = Add(b, d)", IMAGE, 2),
        ("a = Transpose<perm=[0,2,3,1]>(x) y = Transpose<perm=[0,3,1,2]>(a)", IMAGE, 0),
        ("y = Add(x, t)", IMAGE, 0),
    ],
    ids=["conv", "normal", "normal relu", "pool", "conv pool", "two convs", "inverse", "bias"],
)
def test_small_networks(body: str, output: str, expected: int) -> None:
    """Two at the ends, shared where two convolutions read the same; none without a demand."""
    more = "float[3] s = {1.0, 2.0, 3.0}, float[3,1,1] t = {1.0, 2.0, 3.0}"
    text = graph(body, output, more=more)
    assert left_by(text, *SIMPLIFYING) == [expected] * len(SIMPLIFYING)


def test_weights_are_transposed_at_compile_time_and_the_old_ones_are_gone() -> None:
    model = written(parse(CHAIN), "auto-nhwc").model
    assert [list(weight.dims) for weight in model.graph.initializer] == [[1, 1, 3, 3]]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_weight_that_a_caller_may_override_is_not_a_constant(name: str) -> None:
    text = graph("y = Conv(x, w)", inputs=f"{IMAGE} x, float[3,3,1,1] w")
    assert left_by(text, name) == [0]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_weight_that_a_caller_has_to_give_is_transposed_at_every_run(name: str) -> None:
    text = f"network ({IMAGE} x, float[3,3,1,1] w) => ({IMAGE} y) {{ y = Conv(x, w) }}"
    assert left_by(text, name) == [3]


def test_defaults_that_are_transposed_at_every_run_are_reported() -> None:
    body = "a = Transpose<perm=[1,0,2,3]>(w) y = Conv(x, a)"
    text = graph(body, inputs=f"{IMAGE} x, float[3,3,1,1] w")
    (notice,) = optimize(parse(text), target="onnx", verify=False).record().notices
    assert notice.startswith("an input with a default is transposed at every run")
    assert not optimize(parse(CHAIN), target="nhwc", verify=False).record().notices


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2, 3])
def test_a_concatenation_keeps_its_axis_wherever_it_is_stored(axis: int) -> None:
    """Neither is every operator that is not channels first agnostic, nor every axis the last."""
    lengths = [2, 3, 4, 5]
    lengths[axis] *= 2
    output = "float[{},{},{},{}]".format(*lengths)
    text = graph(f"a = Conv(x, w) b = Conv(x, w2) y = Concat<axis = {axis}>(a, b)", output)
    text = text.replace("<", f"<{WEIGHT.replace('w =', 'w2 =')}, ", 1)
    assert left_by(text, *SIMPLIFYING) == [2] * len(SIMPLIFYING)


def test_what_is_channels_last_already_is_left_alone() -> None:
    there = optimize(parse(CHAIN), target="nhwc", verify=False).model
    again = optimize(there, target="nhwc", verify=False)
    assert not again.changed
    assert again.model == there


def test_unchanged_is_reported() -> None:
    given = parse(f"idle ({IMAGE} x) => ({IMAGE} y) {{ y = Relu(x) }}")
    result = optimize(given, target="nhwc", strategy="auto-nhwc")
    assert not result.changed
    assert result.model == given
    assert result.record().verdict == "the same model"


def test_every_operand_of_a_sum_is_transposed() -> None:
    body = "a = BatchNormalization(x, s, s, s, s) y = Add(a, z)"
    inputs = f"{IMAGE} x, {IMAGE} z"
    text = graph(body, inputs=inputs, more="float[3] s = {1.0, 2.0, 3.0}")
    assert left_by(text, "auto-nhwc", *WEIGHING) == [3, *[2] * len(WEIGHING)]


def test_a_sum_follows_any_operand_that_a_transpose_stands_before() -> None:
    """As the document proposes: the other operand is transposed, and the next one finds it so."""
    text = graph("a = Conv(x, w) b = Add(a, z) y = Conv(b, w)", inputs=f"{IMAGE} x, {IMAGE} z")
    assert left_by(text, "auto-nhwc", "auto-nhwc-majority", "exact") == [3, 4, 3]


@pytest.mark.parametrize("operands", ["a, x", "x, a"])
def test_a_transpose_of_the_model_is_followed_like_one_that_was_inserted(operands: str) -> None:
    """No kernel is in this model, and the last axis of one operand was moved by its exporter."""
    text = f"""given (float[2,4,5,3] t, {IMAGE} x) => ({IMAGE} y, float[2,4,5,3] z) {{
        a = Transpose<perm = [0, 3, 1, 2]>(t)
        y = Add({operands})
        z = Transpose<perm = [0, 2, 3, 1]>(y)
    }}"""
    model = written(parse(text), "auto-nhwc").model
    (added,) = (node for node in model.graph.node if node.op_type == "Add")
    moved = [n.output[0] for n in model.graph.node if n.op_type == "Transpose" and "x" in n.input]
    assert set(moved) & set(added.input)


def test_one_operand_channels_last_does_not_outweigh_three() -> None:
    """A sum of four has one of them channels last: to follow it adds three to save one.

    The document's own rule follows it.
    """
    inputs = ", ".join(f"{IMAGE} {name}" for name in ("x", "p", "q", "r"))
    text = graph("a = Conv(x, w) y = Sum(a, p, q, r)", inputs=inputs)
    assert left_by(text, "auto-nhwc", *WEIGHING) == [5, *[2] * len(WEIGHING)]


def test_a_value_read_by_two_convolutions_is_transposed_once() -> None:
    text = graph("a = Conv(x, w) b = Conv(x, w) c = Sub(a, b) y = Relu(c)")
    assert left_by(text, *SIMPLIFYING) == [2] * len(SIMPLIFYING)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_any_number_of_axes(rank: int) -> None:
    shape = ",".join(map(str, (2, 3, 4, 5, 6)[:rank]))
    kernel = ",".join(["3", "3", *["1"] * (rank - 2)])
    weight = WEIGHT.replace("3,3,1,1", kernel)
    text = f"""axes (float[{shape}] x) => (float[{shape}] y) <{weight}> {{
        a = Conv(x, w) b = Relu(a) c = Conv(b, w) y = Relu(c) }}"""
    assert left_by(text, "naive", *SIMPLIFYING) == [4, *[2] * len(SIMPLIFYING)]


@pytest.mark.parametrize("shape", ["[3,1,1]", "[5]", "[4,5]", "[1,3,1,1]", ""])
def test_operands_of_fewer_axes_do_not_stop_it(shape: str) -> None:
    """Given at run time they are transposed by themselves, which moves less than the image."""
    inputs = f"{IMAGE} x, float{shape} z"
    text = graph("a = Conv(x, w) b = Add(a, z) y = Conv(b, w)", inputs=inputs)
    (left,) = left_by(text, "exact")
    images = 2
    assert left <= images + (shape == "[4,5]")


def test_a_pool_that_returns_indices_stays_as_it_is() -> None:
    """Places are counted through the whole tensor, channels first."""
    text = f"""places ({IMAGE} x) => (float[2,3,3,4] y, int64[2,3,3,4] p) {{
        a = Relu(x)
        y, p = MaxPool<kernel_shape = [2, 2]>(a)
    }}"""
    for name in STRATEGIES:
        assert written(parse(text), name).kinds == ["Relu", "MaxPool"]


REGIONS_ONE = """one (float[1,3,5,5] x, float[2,3,3,3] v)
    => (float[1,2,3,3] y, float[2,3,3,3] m, float[2,1,3,3] p, float[2,1,3,3] q)
<float[2,3,3,3] w = {WEIGHT}, float[2] b = {1.0, 2.0}, int64[4] shape = {2, 1, 3, 3}> {
    c = Conv(x, w, b)
    y = Conv(x, v)
    m = MatMul(w, v)
    p = Reshape(c, shape)
    q = Reshape(c, shape)
}""".replace("WEIGHT", ", ".join(map(str, range(1, 55))))
REGIONS_TWO = """two (float[3,1,5,5] x, float[2,3,3,3] v, float[2,3,3,3] u)
    => (float[1,2,3,3] y, float[1,2,3,3] z, float[3,5,5] r)
<int64[4] image = {1, 3, 5, 5}, int64[3] planes = {3, 5, 5}> {
    a = Reshape(x, image)
    y = Conv(a, v)
    z = Conv(a, u)
    r = Reshape(a, planes)
}"""


@pytest.mark.parametrize(("text", "most", "plus"), [(REGIONS_ONE, 4, 4), (REGIONS_TWO, 5, 6)])
def test_shared_borders_of_regions(text: str, most: int, plus: int) -> None:
    """The input serves two convolutions, a result two Reshapes; caller's weights are transposed.

    A Reshape that drops an axis of length 1 needs nothing, unless it joins a region whatever that
    costs.
    """
    left = left_by(text, "preset", "preset-cost", "exact")
    assert max(left) <= most
    assert min(left) == left[-1]
    assert left_by(text, "preset-plus") == [plus]


def test_a_small_classifier_has_one_at_its_image() -> None:
    """Where it is flattened the rows of a constant follow; regions restore the order there."""
    record = compare_strategies(lenet(2), target="nhwc", verify=False)
    found = {each.name: (each.inserted, each.left.transposes) for each in record.strategies}
    isolating = {name for name in SIMPLIFYING if STRATEGIES[name].isolates}
    assert found.pop("preset") == (2, 2)
    assert {found[name] for name in found.keys() & set(SIMPLIFYING) - isolating} == {(1, 1)}
    assert {found[name][1] for name in isolating} == {1}


def test_an_inserted_transpose_is_named_after_what_it_serves() -> None:
    model = written(parse(CHAIN), "auto-nhwc").model
    names = [node.name for node in model.graph.node if node.op_type == "Transpose"]
    assert names == [
        "Conv_restated_transpose_input_0",
        "Relu_restated_1_transpose_output_0",
    ]
    assert model.graph.node[0].output == ["x_0231"]


def test_the_way_back_needs_none() -> None:
    there = written(parse(CHAIN), "auto-nhwc").model
    onnx.checker.check_model(there, full_check=True)
    assert count(optimize(there, target="onnx", verify=False).model).transposes == 0
