"""Steps of optimisers are those that the standard writes down."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing

DOMAIN = "ai.onnx.preview.training"
STEPS: list[tuple[str, int, dict[str, Any]]] = [
    ("Adagrad", 3, {}),
    ("Adagrad", 3, {"norm_coefficient": 0.25, "decay_factor": 0.5, "epsilon": 0.125}),
    ("Adam", 4, {}),
    ("Adam", 4, {"norm_coefficient": 0.25, "alpha": 0.75, "beta": 0.5, "epsilon": 0.125}),
    ("Adam", 4, {"norm_coefficient_post": 0.25}),
    ("Momentum", 3, {"norm_coefficient": 0.25, "alpha": 0.75, "beta": 0.5, "mode": "standard"}),
    ("Momentum", 3, {"norm_coefficient": 0.25, "alpha": 0.75, "beta": 0.5, "mode": "nesterov"}),
]


def _model(op_type: str, shapes: list[list[int]], kinds: int, **named: Any) -> onnx.ModelProto:
    """Values, gradients and what is kept, each of all tensors."""
    given = [
        (f"x{part}_{place}", shape) for part in range(kinds) for place, shape in enumerate(shapes)
    ]
    results = [f"y{index}" for index in range(len(given) - len(shapes))]
    node = onnx.helper.make_node(
        op_type, ["r", "t", *(name for name, _ in given)], results, domain=DOMAIN, **named
    )
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node],
        "step",
        [
            onnx.helper.make_tensor_value_info("r", kind, []),
            onnx.helper.make_tensor_value_info("t", onnx.TensorProto.INT64, []),
            *(onnx.helper.make_tensor_value_info(name, kind, shape) for name, shape in given),
        ],
        [onnx.ValueInfoProto(name=name) for name in results],
    )
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid(DOMAIN, 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize(("op_type", "kinds", "named"), STEPS, ids=str)
@pytest.mark.parametrize("time", [0, 3])
@pytest.mark.parametrize("shapes", [[[2, 3]], [[4], [2, 1, 3], []]], ids=str)
def test_steps_of_optimisers(
    op_type: str, kinds: int, named: dict[str, Any], time: int, shapes: list[list[int]]
) -> None:
    model = _model(op_type, shapes, kinds, **named)
    rng = np.random.default_rng(7)
    feeds = {
        port.name: rng.random(
            [dim.dim_value for dim in port.type.tensor_type.shape.dim], dtype=np.float32
        )
        for port in model.graph.input
    }
    feeds = {name: np.asarray(x) for name, x in feeds.items()} | {"t": np.array(time)}
    wanted = ReferenceEvaluator(model).run(None, feeds)
    found = relayout.compile(model, tune=False, verify=False)(feeds).values()
    for expected, got in zip(wanted, found, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)
