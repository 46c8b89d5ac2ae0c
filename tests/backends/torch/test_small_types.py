"""Types of less than a byte are held in bytes, and are themselves where a model is fed and read."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing

FLOAT4 = ml_dtypes.float4_e2m1fn
EDGES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, np.inf, 0.0])


def _compiled(text: str) -> Any:
    model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 23]> g {text}')
    return relayout.compile(model, tune=False, verify=False)


@pytest.mark.parametrize("kind", ["float", "float16", "double"])
def test_floats_of_four_bits_are_the_nearest_and_even_between_two(kind: str) -> None:
    dtype = {"float": np.float32, "float16": np.float16, "double": np.float64}[kind]
    step: Any = min(dtype, np.float32, key=lambda kind: np.dtype(kind).itemsize)
    near = np.concatenate([EDGES, np.nextafter(EDGES.astype(step), step(0)), EDGES * 0.9])
    x = np.concatenate([near, -near]).astype(dtype)
    found = _compiled(f"({kind}[60] x) => (float4e2m1[60] y) {{ y = Cast<to = 23>(x) }}")(x)["y"]
    assert found.dtype == FLOAT4
    np.testing.assert_array_equal(found.view(np.uint8), x.astype(FLOAT4).view(np.uint8))


def test_what_is_no_number_has_no_place_in_four_bits() -> None:
    model = _compiled(
        "(float[2] x) => (float[2] y) { narrow = Cast<to = 23>(x) y = Cast<to = 1>(narrow) }"
    )
    found = model(np.array([np.nan, 2.6], np.float32))["y"]
    np.testing.assert_array_equal(found, [0, 3])


@pytest.mark.parametrize(
    ("axis", "scale", "blocks"), [(1, "{2.0}", ""), (0, "{2.0, 0.5}", ""), (1, "", "2")]
)
def test_quantised_floats_of_four_bits(axis: int, scale: str, blocks: str) -> None:
    """By one scale, by one a row, or by one a block."""
    shape = "[2,2]" if blocks else "[2]" if "," in scale else ""
    given = "{2.0, 0.5, 1.0, 4.0}" if blocks else scale
    size = f", block_size = {blocks}" if blocks else ""
    text = f"""(float[2,4] x) => (float4e2m1[2,4] q, float[2,4] y) <float{shape} s = {given}> {{
      q = QuantizeLinear<axis = {axis}, output_dtype = 23{size}>(x, s)
      y = DequantizeLinear<axis = {axis}{size}>(q, s)
    }}"""
    x = np.random.default_rng(5).normal(0, 4, (2, 4)).astype(np.float32)
    steps: Any = {
        "": np.float32(2),
        "[2]": np.array([[2], [0.5]], np.float32),
        "[2,2]": np.array([[2, 2, 0.5, 0.5], [1, 1, 4, 4]], np.float32),
    }[shape]
    narrow = (x / steps).astype(FLOAT4)
    found = _compiled(text)(x)
    np.testing.assert_array_equal(found["q"].view(np.uint8), narrow.view(np.uint8))
    np.testing.assert_array_equal(found["y"], narrow.astype(np.float32) * steps)


@pytest.mark.parametrize("dtype", [FLOAT4, ml_dtypes.int4, ml_dtypes.uint4])
def test_small_types_are_moved_as_they_are(dtype: Any) -> None:
    """Fed and kept as weights; tensors come as the bytes that hold them."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, w = (np.arange(start, start + 6).reshape(2, 3).astype(dtype) for start in (0, 1))
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
            onnx.helper.make_node("Transpose", ["w"], ["u"], perm=[1, 0]),
        ],
        "g",
        [onnx.helper.make_tensor_value_info("x", kind, [2, 3])],
        [onnx.helper.make_tensor_value_info(name, kind, [3, 2]) for name in "tu"],
        [numpy_helper.from_array(w, "w")],
    )
    opsets = [onnx.helper.make_opsetid("", 23)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=11)
    compiled = relayout.compile(model, tune=False, verify=False)
    for name, expected in {"t": x.T, "u": w.T}.items():
        found = compiled(x)[name]
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    held = torch.from_numpy(x.astype(np.float32)).to(
        {FLOAT4: torch.float8_e4m3fn, ml_dtypes.int4: torch.int8}.get(dtype, torch.uint8)
    )
    assert compiled(held)["t"].dtype == held.dtype
