"""Operators of classical machine learning give in torch what they give in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from benchmarks.judge.running import ORT, run

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.errors import RelayoutError  # noqa: E402

DOMAIN = "ai.onnx.ml"
NAN = float("nan")


def _model(op_type: str, inputs: dict[str, Any], **named: Any) -> onnx.ModelProto:
    """One node; attributes that are arrays are tensors."""
    attributes = {
        name: numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
        for name, value in named.items()
    }
    node = onnx.helper.make_node(op_type, [*inputs], ["y"], domain=DOMAIN, **attributes)
    ports = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
        )
        for name, x in inputs.items()
    ]
    graph = onnx.helper.make_graph([node], "g", ports, [onnx.ValueInfoProto(name="y")])
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(DOMAIN, 5)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _agrees(model: onnx.ModelProto, inputs: dict[str, Any]) -> None:
    (wanted,) = run(model, inputs, ORT)
    (found,) = relayout.compile(model, tune=False, verify=False)(inputs).values()
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threshold", [None, 0.5, -1.0])
def test_binarizer(threshold: float | None) -> None:
    x = np.array([[-2, -1, 0, 0.25], [0.5, 0.75, 1, 3]], np.float32)
    named = {} if threshold is None else {"threshold": threshold}
    _agrees(_model("Binarizer", {"x": x}, **named), {"x": x})


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_array_feature_extractor(shape: tuple[int, ...], dtype: Any) -> None:
    inputs = {"x": np.arange(np.prod(shape)).reshape(shape).astype(dtype), "i": np.array([[4, 0]])}
    _agrees(_model("ArrayFeatureExtractor", inputs), inputs)


ENCODINGS: list[tuple[Any, dict[str, Any]]] = [
    (np.int64, {"keys_int64s": [5, 1, 3], "values_int64s": [7, 8, 9]}),
    (np.int64, {"keys_int64s": [5, 1], "values_floats": [0.5, 1.5], "default_float": 2.0}),
    (np.float32, {"keys_floats": [3.0, NAN, 1.0], "values_int64s": [7, 8, 9], "default_int64": 4}),
    (np.float32, {"keys_floats": [NAN], "values_floats": [0.5]}),
    (np.float32, {"keys_floats": [3.0, 1.0], "values_floats": [0.5, 1.5]}),
    (
        np.float64,
        {
            "keys_tensor": np.array([3.0, 0.5, 1.0]),
            "values_tensor": np.array([1.0, 2.0, 4.0]),
            "default_tensor": np.array([0.25]),
        },
    ),
]


@pytest.mark.parametrize(("dtype", "named"), ENCODINGS, ids=str)
def test_label_encoder(dtype: Any, named: dict[str, Any]) -> None:
    numbers = [0, 1, 2, 3, 4, 5] if dtype == np.int64 else [0, 0.5, 1, 2, NAN, 3]
    x = np.array(numbers, dtype).reshape(2, 3)
    _agrees(_model("LabelEncoder", {"x": x}, **named), {"x": x})


def test_labels_that_are_repeated_have_their_last_value() -> None:
    x = np.array([1, 2, 3])
    model = _model("LabelEncoder", {"x": x}, keys_int64s=[1, 2, 1], values_int64s=[4, 5, 6])
    found = relayout.compile(model, tune=False, verify=False)(x)["y"]
    np.testing.assert_array_equal(found, [6, 5, -1])


def test_labels_that_are_strings_are_refused() -> None:
    x = np.array([1, 2])
    model = _model("LabelEncoder", {"x": x}, keys_int64s=[1, 2], values_strings=["a", "b"])
    with pytest.raises(RelayoutError, match="maps strings"):
        relayout.compile(model, tune=False, verify=False)


def _forest(rng: Any, trees: int, depth: int, modes: list[int], dtype: Any) -> dict[str, Any]:
    """Complete trees of random conditions on four features, with three targets."""
    inner = 2**depth - 1
    named: dict[str, Any] = {
        "tree_roots": [tree * inner for tree in range(trees)],
        "n_targets": 3,
        "leaf_targetids": rng.integers(0, 3, trees * (inner + 1)).tolist(),
        "leaf_weights": rng.normal(size=trees * (inner + 1)).astype(dtype),
        "nodes_splits": rng.integers(-2, 3, trees * inner).astype(dtype),
        "nodes_modes": rng.choice(modes, trees * inner).astype(np.uint8),
        "nodes_featureids": rng.integers(0, 4, trees * inner).tolist(),
        "nodes_missing_value_tracks_true": rng.integers(0, 2, trees * inner).tolist(),
    }
    for side, name in enumerate(("true", "false")):
        places, leafs = [], []
        for tree in range(trees):
            children = [2 * place + 1 + side for place in range(inner)]
            leafs += [int(child >= inner) for child in children]
            places += [
                tree * (inner + 1) + child - inner if child >= inner else tree * inner + child
                for child in children
            ]
        named |= {f"nodes_{name}nodeids": places, f"nodes_{name}leafs": leafs}
    return named


@pytest.mark.parametrize("modes", [[0], [3], [0, 1, 2, 3, 4, 5]], ids=str)
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
@pytest.mark.parametrize(("trees", "depth"), [(1, 1), (1, 3), (7, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tree_ensembles(
    modes: list[int], aggregate: int, trees: int, depth: int, dtype: Any
) -> None:
    rng = np.random.default_rng(trees + depth)
    x = rng.integers(-3, 4, (9, 4)).astype(dtype)
    x[2, 1] = x[5, 0] = NAN
    forest = _forest(rng, trees, depth, modes, dtype)
    model = _model("TreeEnsemble", {"x": x}, aggregate_function=aggregate, **forest)
    _agrees(model, {"x": x})


def test_conditions_of_members() -> None:
    """Lists are of the nodes in their order, and may hold zero or nothing."""
    named = {
        "tree_roots": [0],
        "n_targets": 2,
        "nodes_featureids": [0, 1, 0],
        "nodes_modes": np.array([6, 6, 0], np.uint8),
        "nodes_splits": np.array([0, 0, 2.5], np.float32),
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": np.array([1, 10, 100, 1000], np.float32),
        "membership_values": np.array([0, 3, NAN, 1, NAN], np.float32),
    }
    x = np.array([[0, 1], [3, 2], [2, 1], [4, 0], [NAN, 1]], np.float32)
    found = relayout.compile(_model("TreeEnsemble", {"x": x}, **named), tune=False, verify=False)
    wanted = [[1, 0], [0, 10], [100, 0], [0, 1000], [0, 1000]]
    np.testing.assert_array_equal(found(x)["y"], wanted)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"post_transform": 1}, "transforms its results"),
        ({"nodes_modes": np.array([6], np.uint8)}, "no attribute 'membership_values'"),
        ({"nodes_truenodeids": [0], "nodes_trueleafs": [0]}, "leads back into itself"),
    ],
)
def test_trees_that_are_refused(named: dict[str, Any], reason: str) -> None:
    x = np.zeros((2, 4), np.float32)
    forest = _forest(np.random.default_rng(0), 1, 1, [0], np.float32) | named
    with pytest.raises(RelayoutError, match=reason):
        relayout.compile(_model("TreeEnsemble", {"x": x}, **forest), tune=False, verify=False)
