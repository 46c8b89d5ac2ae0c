"""Regions: the worked examples of the document that proposes them, and its mistakes put right."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from relayout.assign.strategies.naive import isolating_copies
from relayout.assign.strategies.regions import UnionFind
from relayout.assign.strategies.registry import STRATEGIES, strategy_of
from relayout.layout.layout import NCHW, LayoutClass, plain_class
from relayout.layout.permutation import Permutation
from relayout.optimizer.compare import compare_strategies
from tests.assign.test_strategies import chain
from tests.assign.writing import left_by, written
from tests.rewrite.rewriting import parse

SIMPLIFYING = [name for name in STRATEGIES if name != "naive"]
REGIONAL = ("preset", "preset-plus", "preset-cost", "exact")
IMAGE = "float[1,2,4,5]"
WEIGHT = "float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}"
SQUARE = Permutation((0, 2, 1, 3))


def test_a_change_of_a_tensor_shows_in_its_shape_at_best() -> None:
    assert SQUARE.reorder((1, 2, 3, 1)) != (1, 2, 3, 1)
    assert SQUARE.reorder((1, 2, 2, 1)) == (1, 2, 2, 1)
    assert plain_class(4, 1) is LayoutClass.TENSOR
    assert NCHW.stored(SQUARE).axes == "NHCW"


def test_a_pure_convolutional_network_has_two() -> None:
    text = f"""pure ({IMAGE} x) => ({IMAGE} y) <{WEIGHT}> {{
        a = Conv(x, w)
        b = Relu(a)
        c = MaxPool<kernel_shape = [1, 1]>(b)
        d = Add(c, a)
        y = Conv(d, w)
    }}"""
    assert left_by(text, *SIMPLIFYING) == [2] * len(SIMPLIFYING)


@pytest.mark.parametrize(("third", "expected"), [("Identity", 2), ("Sigmoid", 2), ("Conv", 4)])
def test_a_sum_of_two_arrangements_of_one_shape(third: str, expected: int) -> None:
    """Both Reshapes give [1,40]; had one of them seen channels last, the sum would be wrong.

    That the other summand was a feature too would not help: what is flattened cannot be put back.
    """
    operands = "z, w" if third == "Conv" else "z"
    text = f"""counter ({IMAGE} x, {IMAGE} z) => (float[1,40] y)
    <{WEIGHT}, int64[2] flat = {{1, 40}}> {{
        a = Conv(x, w)
        b = Reshape(a, flat)
        t = {third}({operands})
        c = Reshape(t, flat)
        y = Add(b, c)
    }}"""
    assert left_by(text, *STRATEGIES) == [expected] * len(STRATEGIES)


def test_two_nodes_are_isolated_by_four_and_a_region_has_two() -> None:
    text = f"""two ({IMAGE} x) => ({IMAGE} y) <{WEIGHT}> {{ a = Conv(x, w) y = Conv(a, w) }}"""
    record = compare_strategies(parse(text), target="nhwc", verify=False)
    inserted = {each.name: each.inserted for each in record.strategies}
    assert (inserted["naive"], inserted["preset"], inserted["exact"]) == (4, 2, 2)
    assert all(each.left.transposes == 2 and each.regions == 1 for each in record.strategies)


TENSOR_BETWEEN = f"""between ({IMAGE} x) => ({IMAGE} y)
<{WEIGHT}, int64[1] last = {{4}}, int64[4] whole = {{1, 2, 4, 5}}> {{
    a = Conv(x, w)
    BETWEEN
    y = Conv(d, w)
}}"""
IN_LINE = "b = Unsqueeze(a, last) c = Relu(b) d = Squeeze(c, last)"
IN_SERIES = """b = Unsqueeze(a, last) c = Relu(b) e = Squeeze(c, last) f = Sigmoid(e)
    g = Unsqueeze(f, last) h = Relu(g) d = Squeeze(h, last)"""
MIXING = """flat = Constant<value_ints = [1, 40]>() b = Reshape(a, flat)
    one = Constant<value_int = 1>() c = CumSum(b, one) d = Reshape(c, whole)"""


@pytest.mark.parametrize("between", [IN_LINE, IN_SERIES], ids=["one", "in series"])
def test_plus_takes_in_tensors_that_mean_the_same_in_any_order(between: str) -> None:
    """Also two of them in series, where taking in one makes the other one possible."""
    text = TENSOR_BETWEEN.replace("BETWEEN", between)
    naive, *regional = left_by(text, "naive", *REGIONAL)
    assert regional == [4, 2, 2, 2]
    assert naive >= 4


def test_plus_takes_in_nothing_that_mixes_axes() -> None:
    text = TENSOR_BETWEEN.replace("BETWEEN", MIXING)
    assert left_by(text, *REGIONAL) == [4] * 4


@pytest.mark.parametrize("last", ["Identity", "Softmax"])
def test_flattening_is_refused_and_the_numbers_show_why(last: str) -> None:
    """conv, Reshape(N, -1), Softmax: of 0 to 7 channels last would give 0 4 1 5 2 6 3 7."""
    text = f"""flattened (float[1,2,2,2] x) => (float[1,8] y)
    <float[2,2,1,1] w = {{1.0, 0.0, 0.0, 1.0}}, int64[2] flat = {{1, -1}}> {{
        a = Conv(x, w)
        b = Reshape(a, flat)
        y = {last}(b)
    }}"""
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)}
    (expected,) = ReferenceEvaluator(parse(text)).run(None, feeds)
    assert np.argsort(np.ravel(expected)).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    for name in STRATEGIES:
        result = written(parse(text), name)
        (found,) = ReferenceEvaluator(result.model).run(None, feeds)
        assert result.transposes == 2
        np.testing.assert_array_equal(found, expected)
    wrong = feeds["x"].transpose(0, 2, 3, 1).ravel().tolist()
    assert wrong == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize(
    "operand",
    [
        f"float[1,2,4,5] k = {{{', '.join(map(str, range(40)))}}}",
        "float[2,1,1] k = {1.0, 2.0}",
        "float[5] k = {1.0, 2.0, 3.0, 4.0, 5.0}",
        "float k = {3.0}",
        "float[1] k = {3.0}",
    ],
    ids=["whole", "channels", "row", "scalar", "one"],
)
def test_constants_of_any_rank_follow(operand: str) -> None:
    text = f"""constant ({IMAGE} x) => ({IMAGE} y) <{WEIGHT}, {operand}> {{
        a = Conv(x, w)
        b = Add(a, k)
        y = Conv(b, w)
    }}"""
    assert left_by(text, *SIMPLIFYING) == [2] * len(SIMPLIFYING)


def test_a_tensor_given_at_run_time_costs_its_own() -> None:
    """Those that weigh, and only look back, do not see that a convolution wants the sum too."""
    text = f"""given ({IMAGE} x, {IMAGE} k) => ({IMAGE} y) <{WEIGHT}> {{
        a = Conv(x, w)
        b = Add(a, k)
        y = Conv(b, w)
    }}"""
    left = dict(zip(SIMPLIFYING, left_by(text, *SIMPLIFYING), strict=True))
    weighing = {"auto-nhwc-majority", "greedy"}
    assert left == {name: 4 if name in weighing else 3 for name in SIMPLIFYING}


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_region_without_a_demand_is_left_alone(name: str) -> None:
    text = f"""agnostic ({IMAGE} x) => ({IMAGE} y) {{
        a = Relu(x)
        b = Add(a, x)
        y = Sigmoid(b)
    }}"""
    assert written(parse(text), name).kinds == ["Relu", "Add", "Sigmoid"]


def test_one_conversion_for_all_that_leave_a_region() -> None:
    """Followers that differ see the value as they saw it before."""
    text = f"""leaving ({IMAGE} x) => (float[1,40] p, float[5,8] q)
    <{WEIGHT}, int64[2] row = {{1, 40}}, int64[2] rows = {{5, 8}}> {{
        a = Conv(x, w)
        p = Reshape(a, row)
        q = Reshape(a, rows)
    }}"""
    assert left_by(text, *STRATEGIES) == [2] * len(STRATEGIES)


def test_an_existing_transpose_that_is_not_the_inverse_is_composed() -> None:
    """Rows and columns change places between two kernels: one Transpose, not three."""
    text = f"""turned ({IMAGE} x) => (float[1,2,5,4] y) <{WEIGHT}> {{
        a = Conv(x, w)
        b = Transpose<perm = [0, 1, 3, 2]>(a)
        y = Conv(b, w)
    }}"""
    assert left_by(text, *SIMPLIFYING) == [3] * len(SIMPLIFYING)


def test_an_existing_transpose_to_channels_last_is_free() -> None:
    text = f"""free ({IMAGE} x) => (float[1,4,5,2] y) <{WEIGHT}> {{
        a = Conv(x, w)
        y = Transpose<perm = [0, 2, 3, 1]>(a)
    }}"""
    assert left_by(text, *STRATEGIES) == [1] * len(STRATEGIES)


def test_features_of_two_layouts_do_not_join_unconverted() -> None:
    """A convolution of a value that is given channels last, and one that is not."""
    text = f"""joined (float[1,4,5,2] x, {IMAGE} z) => ({IMAGE} y) <{WEIGHT}> {{
        t = Transpose<perm = [0, 3, 1, 2]>(x)
        a = Conv(t, w)
        b = Conv(z, w)
        y = Add(a, b)
    }}"""
    assert left_by(text, *SIMPLIFYING) == [2] * len(SIMPLIFYING)


def test_a_computed_weight_and_a_value_that_is_both() -> None:
    """One order for features and one for weights: the value that is both has a copy of each."""
    text = """both (float[2,2,3,3] x) => (float[2,2,1,1] y, float[2,2,1,1] z) {
        v = Sigmoid(x)
        y = Conv(x, v)
        z = Conv(v, v)
    }"""
    left = dict(zip(STRATEGIES, left_by(text, *STRATEGIES), strict=True))
    assert min(left.values()) == left["exact"] == 2


def test_nine_nodes_of_three_colours_are_three_sets() -> None:
    sets = UnionFind(9)
    assert [sets.find(item) for item in range(9)] == list(range(9))
    for first, second in ((0, 1), (3, 4), (6, 7)):
        sets.join(first, second)
    for third, second in ((2, 1), (5, 4), (8, 7)):
        sets.join(third, second)
    groups = [[item for item in range(9) if sets.find(item) == sets.find(top)] for top in (0, 3, 6)]
    assert groups == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_sets_are_identified_by_their_root_at_any_depth() -> None:
    sets = UnionFind(100_000)
    for item in range(99_999):
        sets.join(item, item + 1)
    assert len({sets.find(item) for item in range(100_000)}) == 1
    assert sets.size[sets.find(0)] == 100_000


def test_isolation_costs_two_for_each_node() -> None:
    """One operand and one result each: 2n, before anything cancels."""
    problem = chain(("conv", "relu") * 3)
    assert isolating_copies(problem, strategy_of("naive")(problem).choice) == 6
