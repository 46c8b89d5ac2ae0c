"""Every family of operators, as LiteRT runs it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from relayout.errors import RelayoutError
from tests.backends.litert.building import (
    assert_runs_alike,
    builtins_of,
    drawn,
    model_of,
    one_node,
)

IMAGE = (1, 4, 9, 11)

CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"pads": [1, 1, 1, 1]},
    {"pads": [0, 1, 2, 0], "strides": [2, 2]},
    {"pads": [2, 2, 2, 2], "dilations": [2, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
    {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    {"auto_pad": "VALID"},
]


@pytest.mark.parametrize("attributes", CONVOLUTIONS)
@pytest.mark.parametrize("group", [1, 2, 4])
def test_convolutions(attributes: dict[str, Any], group: int) -> None:
    weight = drawn(8, 4 // group, 3, 3)
    assert_runs_alike(one_node("Conv", IMAGE, [weight, drawn(8)], group=group, **attributes))


def test_a_depthwise_convolution_has_a_builtin_of_its_own() -> None:
    model = one_node("Conv", (1, 4, 8, 8), [drawn(8, 1, 3, 3)], group=4, pads=[1, 1, 1, 1])
    assert "DEPTHWISE_CONV_2D" in builtins_of(assert_runs_alike(model))


def test_convolutions_of_one_and_three_spatial_axes() -> None:
    assert_runs_alike(one_node("Conv", (1, 4, 16), [drawn(6, 4, 5)], pads=[2, 1], strides=[2]))
    assert_runs_alike(one_node("Conv", (1, 2, 5, 6, 7), [drawn(3, 2, 2, 2, 2)]))


TRANSPOSED: list[dict[str, Any]] = [
    {},
    {"strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 1]},
    {"dilations": [2, 1]},
    {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
]


@pytest.mark.parametrize("attributes", TRANSPOSED)
@pytest.mark.parametrize("group", [1, 2])
def test_transposed_convolutions(attributes: dict[str, Any], group: int) -> None:
    weight, bias = drawn(4, 3, 3, 3), drawn(3 * group)
    model = one_node("ConvTranspose", (1, 4, 5, 6), [weight, bias], group=group, **attributes)
    assert_runs_alike(model)


POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 2], "pads": [0, 0, 1, 1]},
    {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
]


@pytest.mark.parametrize("attributes", POOLS)
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_pools(op_type: str, attributes: dict[str, Any]) -> None:
    assert_runs_alike(one_node(op_type, IMAGE, **attributes))


def test_an_average_over_padded_windows_counts_what_it_is_asked_to() -> None:
    attributes: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    assert_runs_alike(one_node("AveragePool", IMAGE, count_include_pad=1, **attributes))
    assert_runs_alike(one_node("AveragePool", IMAGE, ceil_mode=1, **attributes))
    assert_runs_alike(one_node("GlobalAveragePool", IMAGE))


RESIZES: list[dict[str, Any]] = [
    {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    {"mode": "nearest"},
    {"mode": "nearest", "nearest_mode": "ceil"},
    {"mode": "linear"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
    {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    {"mode": "cubic"},
]


@pytest.mark.parametrize("attributes", RESIZES)
@pytest.mark.parametrize("scales", [(2.0, 2.0), (2.3, 1.5), (0.5, 3.0)])
def test_resizes(attributes: dict[str, Any], scales: tuple[float, float]) -> None:
    constants = [None, np.asarray([1, 1, *scales], np.float32)]
    assert_runs_alike(one_node("Resize", (1, 2, 6, 8), constants, **attributes))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads(mode: str) -> None:
    pads = np.asarray([0, 0, 1, 2, 0, 0, 2, 0])
    assert_runs_alike(one_node("Pad", IMAGE, [pads], mode=mode))


def test_a_pad_may_cut_off_or_add_a_number() -> None:
    assert_runs_alike(one_node("Pad", (2, 5), [np.asarray([0, -1, 1, 2]), np.float32(3.0)]))


ELEMENTWISE: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("Abs", "Neg", "Exp", "Floor", "Ceil", "Round", "Sin", "Cos")),
    *((name, {}) for name in ("Erf", "Tanh", "Sigmoid", "Relu", "Softplus", "Softsign", "Mish")),
    *((name, {}) for name in ("HardSwish", "HardSigmoid", "Selu", "Elu", "Sign", "Gelu")),
    ("Elu", {"alpha": 0.5}),
    ("LeakyRelu", {"alpha": 0.2}),
    ("Gelu", {"approximate": "tanh"}),
    ("Softmax", {}),
    ("Softmax", {"axis": 1}),
    ("LogSoftmax", {"axis": 0}),
]


@pytest.mark.parametrize(("op_type", "attributes"), ELEMENTWISE)
def test_elementwise_operators_and_activations(op_type: str, attributes: dict[str, Any]) -> None:
    assert_runs_alike(one_node(op_type, (2, 3, 5), **attributes))


@pytest.mark.parametrize("bounds", [(0, 6), (0, 1), (-1, 1), (-0.5, 0.25)])
def test_clips(bounds: tuple[float, float]) -> None:
    assert_runs_alike(one_node("Clip", (3, 4), [np.float32(bound) for bound in bounds]))


@pytest.mark.parametrize("shape", [(4, 1, 1), (1,), (4, 9, 11), (9, 1)])
def test_slopes_for_negative_numbers(shape: tuple[int, ...]) -> None:
    assert_runs_alike(one_node("PRelu", IMAGE, [drawn(*shape)]))


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Greater", "Equal"])
def test_operators_on_two_tensors_of_many_axes(op_type: str) -> None:
    node = helper.make_node(op_type, ["a", "b"], ["y"])
    shapes = {"a": (2, 1, 1, 3, 2, 2, 2), "b": (2, 2, 2, 1, 1, 2, 2)}
    assert_runs_alike(model_of([node], shapes, ["y"]))


PRODUCTS = [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4, 5))]


@pytest.mark.parametrize("shapes", PRODUCTS)
@pytest.mark.parametrize("is_constant", [False, True])
def test_products(shapes: tuple[tuple[int, ...], tuple[int, ...]], is_constant: bool) -> None:
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    inputs = {"a": shapes[0]} if is_constant else {"a": shapes[0], "b": shapes[1]}
    constants = {"b": drawn(*shapes[1])} if is_constant else {}
    assert_runs_alike(model_of([node], inputs, ["y"], constants))


@pytest.mark.parametrize("flags", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("is_constant", [False, True])
def test_general_products(flags: tuple[int, int], is_constant: bool) -> None:
    trans_a, trans_b = flags
    a, b = ((4, 3) if trans_a else (3, 4)), ((5, 4) if trans_b else (4, 5))
    attributes: dict[str, Any] = {"transA": trans_a, "transB": trans_b, "alpha": 0.5, "beta": 2.0}
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], **attributes)
    inputs = {"a": a} if is_constant else {"a": a, "b": b}
    constants = {"c": drawn(5)} | ({"b": drawn(*b)} if is_constant else {})
    assert_runs_alike(model_of([node], inputs, ["y"], constants))


EQUATIONS = [
    ("nhwpqc->nchpwq", [(1, 2, 3, 2, 2, 4)]),
    ("abc->ca", [(2, 3, 4)]),
    ("ij->", [(3, 4)]),
    ("ab,bc->ac", [(3, 4), (4, 5)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("bhqk,bkhd->bqhd", [(2, 4, 3, 6), (2, 6, 4, 5)]),
    ("i,j", [(3,), (4,)]),
    ("ai,ai->a", [(3, 4), (3, 4)]),
    ("abx,bcy->ca", [(3, 4, 2), (4, 5, 3)]),
    ("...ab,...bc->...ac", [(2, 1, 3, 4), (1, 5, 4, 2)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
    ("ab,cb->ac", [(2, 1), (5, 1)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=str)
@pytest.mark.parametrize("is_constant", [False, True])
def test_sums_of_products(
    equation: str, shapes: list[tuple[int, ...]], *, is_constant: bool
) -> None:
    names = "abc"[: len(shapes)]
    node = helper.make_node("Einsum", list(names), ["y"], equation=equation)
    fed = dict(zip(names, shapes, strict=True))
    held = {names[-1]: drawn(*fed.pop(names[-1]))} if is_constant and len(shapes) > 1 else {}
    assert_runs_alike(model_of([node], fed, ["y"], held))


def test_a_diagonal_is_named() -> None:
    with pytest.raises(RelayoutError, match="takes a diagonal"):
        assert_runs_alike(one_node("Einsum", (3, 3), equation="ii->i"))


def ints(*numbers: int) -> Any:
    return np.asarray(numbers, np.int64)


MOVEMENTS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Reshape", [ints(0, -1)], {}),
    ("Flatten", [], {"axis": 2}),
    ("Unsqueeze", [ints(0, -1)], {}),
    ("Transpose", [], {"perm": [2, 0, 1]}),
    ("Expand", [ints(3, 1, 1, 1)], {}),
    ("Tile", [ints(1, 2, 3)], {}),
    ("Slice", [ints(1, -1), ints(4, -100), ints(1, 2), ints(1, -2)], {}),
    ("Slice", [ints(0), ints(2**62), ints(-1), ints(2)], {}),
    ("Gather", [ints(-1, 0)], {"axis": 1}),
    ("Gather", [np.int64(-1)], {"axis": 2}),
    ("GatherElements", [np.asarray([[[0, -1, 1]]], np.int64)], {"axis": 2}),
    ("GatherND", [ints(1, 2).reshape(1, 2)], {}),
    ("ArgMax", [], {"axis": 1}),
    ("ArgMin", [], {"axis": 2, "keepdims": 0}),
    ("CumSum", [np.int64(1)], {"reverse": 1, "exclusive": 1}),
    ("Trilu", [np.int64(1)], {"upper": 0}),
    *((name, [ints(0, 2)], {}) for name in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2")),
    *((name, [ints(1)], {"keepdims": 0}) for name in ("ReduceMin", "ReduceProd", "ReduceL1")),
    ("ReduceLogSumExp", [ints(1)], {}),
    ("ReduceSum", [], {}),
    ("Shape", [], {"start": 1}),
    ("Size", [], {}),
]


@pytest.mark.parametrize(("op_type", "constants", "attributes"), MOVEMENTS)
def test_views_places_and_reductions(
    op_type: str, constants: list[Any], attributes: dict[str, Any]
) -> None:
    assert_runs_alike(one_node(op_type, (2, 4, 5), constants, **attributes))


def test_parts_are_split_joined_and_placed() -> None:
    split = helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=1)
    join = helper.make_node("Concat", ["b", "a"], ["y"], axis=1)
    sizes = {"sizes": ints(1, 3)}
    assert_runs_alike(model_of([split, join], {"x": (2, 4, 3)}, ["y"], sizes))
    updates, places = drawn(1, 3), ints(1).reshape(1, 1)
    assert_runs_alike(one_node("ScatterND", (2, 3), [places, updates]))


def test_the_largest_entries_and_their_places() -> None:
    ways: list[dict[str, Any]] = [{"axis": 1}, {"axis": -1, "largest": 0}]
    for attributes in ways:
        node = helper.make_node("TopK", ["x", "k"], ["v", "i"], **attributes)
        assert_runs_alike(model_of([node], {"x": (2, 5, 4)}, ["v", "i"], {"k": ints(2)}))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_channels_as_blocks(mode: str) -> None:
    assert_runs_alike(one_node("DepthToSpace", (1, 8, 3, 2), blocksize=2, mode=mode))
    assert_runs_alike(one_node("SpaceToDepth", (1, 2, 4, 6), blocksize=2))


def test_normalisations() -> None:
    statistics = [drawn(4), drawn(4, seed=1), drawn(4, seed=2), np.abs(drawn(4)) + 1]
    assert_runs_alike(one_node("BatchNormalization", IMAGE, statistics))
    assert_runs_alike(one_node("InstanceNormalization", IMAGE, [drawn(4), drawn(4, seed=1)]))
    assert_runs_alike(one_node("LayerNormalization", (2, 3, 8), [drawn(8), drawn(8, seed=1)]))
    group = one_node("GroupNormalization", IMAGE, [drawn(4), drawn(4)], opset=21, num_groups=2)
    assert_runs_alike(group)
    assert_runs_alike(one_node("LRN", IMAGE, size=3, alpha=0.2))
    assert_runs_alike(one_node("LpNormalization", (2, 3, 8), axis=1))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op_type", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers(op_type: str, gates: int, direction: str) -> None:
    ways = 2 if direction == "bidirectional" else 1
    constants = [drawn(ways, gates * 3, 2), drawn(ways, gates * 3, 3), drawn(ways, gates * 6)]
    names = [f"c{index}" for index in range(3)]
    attributes: dict[str, Any] = {"hidden_size": 3, "direction": direction}
    node = helper.make_node(op_type, ["x", *names], ["y", "h"], **attributes)
    held = dict(zip(names, constants, strict=True))
    assert_runs_alike(model_of([node], {"x": (4, 2, 2)}, ["y", "h"], held))


@pytest.mark.parametrize("linear", [0, 1])
def test_a_gated_unit_may_reset_before_or_after_its_product(linear: int) -> None:
    names = ["x", "w", "r", "b"]
    node = helper.make_node("GRU", names, ["y"], hidden_size=3, linear_before_reset=linear)
    held = {"w": drawn(1, 9, 2), "r": drawn(1, 9, 3), "b": drawn(1, 18)}
    assert_runs_alike(model_of([node], {"x": (3, 1, 2)}, ["y"], held))


def test_an_operator_without_a_builtin_is_named() -> None:
    nodes = [
        helper.make_node("Det", ["x"], ["y"]),
        helper.make_node("Unique", ["x"], ["z"]),
    ]
    model = model_of(nodes, {"x": (3, 3)}, ["y", "z"])
    with pytest.raises(RelayoutError, match="no builtin for Det, Unique"):
        assert_runs_alike(model)


def spelt_out(op_type: str) -> onnx.ModelProto:
    """An activation as exporters write it."""
    if op_type == "GELU":
        nodes = [
            helper.make_node("Div", ["x", "root"], ["a"]),
            helper.make_node("Erf", ["a"], ["b"]),
            helper.make_node("Add", ["b", "one"], ["c"]),
            helper.make_node("Mul", ["x", "c"], ["d"]),
            helper.make_node("Mul", ["d", "half"], ["y"]),
        ]
        numbers = {"root": np.sqrt(2), "one": 1.0, "half": 0.5}
    else:
        nodes = [
            helper.make_node("Add", ["x", "three"], ["a"]),
            helper.make_node("Clip", ["a", "zero", "six"], ["b"]),
            helper.make_node("Mul", ["x", "b"], ["c"]),
            helper.make_node("Div", ["c", "six"], ["y"]),
        ]
        numbers = {"three": 3.0, "zero": 0.0, "six": 6.0}
    held = {name: np.float32(number) for name, number in numbers.items()}
    return model_of(nodes, {"x": (3, 5)}, ["y"], held)


@pytest.mark.parametrize("builtin", ["GELU", "HARD_SWISH"])
def test_activations_that_are_spelt_out_are_one_builtin(builtin: str) -> None:
    assert builtins_of(assert_runs_alike(spelt_out(builtin))) == [builtin]
