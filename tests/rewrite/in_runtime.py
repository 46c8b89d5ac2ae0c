"""Models before and after a rewrite, in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx

from tests.ops import law


def assert_same(
    given: onnx.ModelProto, result: onnx.ModelProto, *, rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Both give the same on noise; open lengths are 2."""
    drawn = np.random.default_rng(0)
    feeds = {
        value.name: drawn.standard_normal(
            [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim], np.float32
        )
        for value in given.graph.input
    }
    pairs = zip(*(law.run(model, feeds, "ort") for model in (given, result)), strict=True)
    for wanted, found in pairs:
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
