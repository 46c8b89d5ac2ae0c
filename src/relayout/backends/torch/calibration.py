"""Measures kernels of models, or of common convolutions, and keeps what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relayout.backends.torch.choose.plan import Choice
from relayout.backends.torch.choose.tuning import tuned
from relayout.backends.torch.compiling import program_of
from relayout.graph.io.sources import ModelSource

COMMON = (
    (3, 64, 224, 7, 2, 1),
    (64, 64, 56, 1, 1, 1),
    (64, 64, 56, 3, 1, 1),
    (64, 256, 56, 1, 1, 1),
    (128, 128, 28, 3, 1, 1),
    (128, 128, 28, 3, 1, 128),
    (256, 256, 14, 3, 1, 1),
    (1024, 256, 14, 1, 1, 1),
    (512, 512, 7, 3, 1, 1),
)
"""Channels before and behind, side, kernel, stride and groups."""


def calibrate(
    models: Sequence[ModelSource],
    device: str = "cpu",
    dtype: str | None = None,
    dims: Mapping[str, int] | None = None,
) -> list[Choice]:
    """What is chosen for each group, each told once."""
    sources = list(models) or [common_convolution(shape) for shape in COMMON]
    found: dict[str, Choice] = {}
    for source in sources:
        _, choices = tuned(program_of(source, device=device, dtype=dtype, dims=dims))
        found.update((choice.group, choice) for choice in choices)
    return list(found.values())


def common_convolution(shape: tuple[int, int, int, int, int, int]) -> onnx.ModelProto:
    """A convolution with a bias and a Relu."""
    depth, width, side, size, stride, groups = shape
    source = np.random.default_rng(0)
    weight = source.standard_normal((width, depth // groups, size, size), np.float32)
    pads = [size // 2] * 4
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=pads, group=groups
        ),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, depth, side, side])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = {"w": weight, "b": np.zeros(width, np.float32)}
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "convolution", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
