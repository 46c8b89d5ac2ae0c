"""Operators of ONNX Runtime between numbers in bytes give in torch what they give there."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from benchmarks.judge.running import ORT, run

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.errors import RelayoutError  # noqa: E402

DATA = {"first": (2, 4, 7, 6), "last": (2, 7, 6, 4)}
STEPS = {"s": np.float32(0.02), "z": np.uint8(3), "t": np.float32(0.05), "w": np.uint8(7)}


def _model(op_type: str, operands: str, shape: tuple[int, ...], **named: Any) -> onnx.ModelProto:
    """One node whose scales and zero points are constants."""
    names = operands.split()
    node = helper.make_node(op_type, names, ["y"], domain="com.microsoft", **named)
    kind = {"c": onnx.TensorProto.BOOL}
    graph = helper.make_graph(
        [node],
        "bytes",
        [
            helper.make_tensor_value_info(name, kind.get(name, onnx.TensorProto.UINT8), shape)
            for name in dict.fromkeys(names)
            if name in {"a", "b", "c"}
        ],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(step), name) for name, step in STEPS.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _differences(model: onnx.ModelProto) -> Any:
    """By how many steps results differ, element by element."""
    feeds = {value.name: _drawn(value) for value in model.graph.input}
    (wanted,) = run(model, feeds, ORT)
    (found,) = relayout.compile(model, tune=False, verify=False)(feeds).values()
    found = np.asarray(found)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    return np.abs(found.astype(np.int64) - wanted.astype(np.int64))


def _drawn(value: onnx.ValueInfoProto) -> Any:
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    numbers = np.random.default_rng(len(value.name)).integers(0, 256, shape)
    return numbers > 127 if value.name == "c" else numbers.astype(np.uint8)


WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [3, 2]},
    {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
]


@pytest.mark.parametrize("place", DATA)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("counts_padding", [0, 1])
def test_average_pools(place: str, window: dict[str, Any], counts_padding: int) -> None:
    named = {**window, "channels_last": int(place == "last"), "count_include_pad": counts_padding}
    model = _model("QLinearAveragePool", "a s z t w", DATA[place], **named)
    if counts_padding and "ceil_mode" in window:
        with pytest.raises(RelayoutError, match="counts what lies beyond its padding"):
            relayout.compile(model, tune=False, verify=False)
        return
    assert _differences(model).max() <= 1


@pytest.mark.parametrize("place", DATA)
def test_means_over_space(place: str) -> None:
    named = {"channels_last": int(place == "last")}
    model = _model("QLinearGlobalAveragePool", "a s z t w", DATA[place], **named)
    assert _differences(model).max() <= 1


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_largest_of_windows_with_channels_last(window: dict[str, Any]) -> None:
    assert not _differences(_model("NhwcMaxPool", "a", DATA["last"], **window)).any()


@pytest.mark.parametrize("operands", ["c a s z b t w s w", "c a s z b t w t w"])
def test_chosen_elements(operands: str) -> None:
    assert _differences(_model("QLinearWhere", operands, (3, 4))).max() <= 1


def test_zero_points_that_are_left_out() -> None:
    model = _model("QLinearSigmoid", "a s z t w", (3, 4))
    model.graph.node[0].input[2] = model.graph.node[0].input[4] = ""
    assert _differences(model).max() <= 1


TIED = (0.5, 1.0, 2.0, 0.25, 0.02, 0.03, 0.05, 0.1)
"""Scales whose quotients often lie between two steps."""


@pytest.mark.parametrize(
    ("op_type", "operands", "named"),
    [
        ("QLinearAdd", "a s z b t w r v", {}),
        ("QLinearMul", "a s z b t w r v", {}),
        ("QLinearLeakyRelu", "a s z r v", {"alpha": 0.25}),
        ("QLinearAveragePool", "a s z r v", {"kernel_shape": [2, 2]}),
        ("QLinearGlobalAveragePool", "a s z r v", {}),
    ],
)
def test_ties_are_rounded_alike(
    monkeypatch: pytest.MonkeyPatch, op_type: str, operands: str, named: dict[str, Any]
) -> None:
    """Whether a zero point comes before or after rounding is seen between two steps only."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        scales = {name: np.float32(rng.choice(TIED)) for name in "str"}
        zeros = {name: np.uint8(rng.integers(0, 40)) for name in "zwv"}
        monkeypatch.setattr(f"{__name__}.STEPS", {**scales, **zeros})
        assert not _differences(_model(op_type, operands, (1, 32, 6, 6), **named)).any()
