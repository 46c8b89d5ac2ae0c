"""1x1 convolutions of [N,H,C,W] in ONNX Runtime: python -m benchmarks.pointwise_ort

One line per shape, of floats and of bytes: the median time between Transposes, as a product, and
as a convolution whose batch is N and H together, run alternately, with how much faster they are.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from benchmarks.einsum_ort import medians, session

SHAPES = {
    "sides of 2100 boxes": (1, 4, 16, 2100, 1),
    "sides of 2100 boxes, 8 images": (8, 4, 16, 2100, 1),
    "64 channels, long rows": (2, 16, 64, 1024, 64),
    "128 channels, 28 places a row": (1, 28, 128, 28, 128),
    "256 channels, 14 places a row": (8, 14, 256, 14, 256),
    "512 channels, 7 places a row": (4, 7, 512, 7, 512),
}
"""N, H, C, W and the channels of the result."""

TRANSPOSES = ("t = Transpose<perm=[0,2,1,3]>(x)", "y = Transpose<perm=[0,2,1,3]>(c)")
RESHAPES = ("t = Reshape(x, folded)", "y = Reshape(c, unfolded)")
CONV = "c = Conv(t, w)"
CONV_IN_BYTES = """
    d = DequantizeLinear(t, s, z)
    v = DequantizeLinear(w, s, o)
    p = Conv(d, v)
    c = QuantizeLinear(p, s, z)"""

FLOATS = {
    "between Transposes": CONV.join(TRANSPOSES),
    "product": "y = MatMul(matrix, x)",
    "folded": CONV.join(RESHAPES),
}
BYTES = {
    "between Transposes": CONV_IN_BYTES.join(TRANSPOSES),
    "folded": CONV_IN_BYTES.join(RESHAPES),
}


def model(shape: tuple[int, ...], body: str, weight: Any) -> onnx.ModelProto:
    """A model of one convolution, of bytes if its weight is."""
    batch, rows, channels, places, results = shape
    dtype = "float" if weight.dtype == np.float32 else "uint8"
    unfolded = f"{batch},{rows},{results},{places}"
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g ({dtype}[{batch},{rows},{channels},{places}] x) => ({dtype}[{unfolded}] y)
        <int64[4] folded = {{{batch * rows},{channels},1,{places}}},
         int64[4] unfolded = {{{unfolded}}}, float s = {{0.1}}, uint8 z = {{128}}, int8 o = {{0}}>
        {{ {body} }}"""
    )
    windows = weight.reshape(results, channels, 1, 1)
    weights = (numpy_helper.from_array(windows, "w"), numpy_helper.from_array(weight, "matrix"))
    read = {name for node in made.graph.node for name in node.input}
    kept = [each for each in (*made.graph.initializer, *weights) if each.name in read]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return made


def line(shape: tuple[int, ...], ways: dict[str, str], options: argparse.Namespace) -> str:
    random = np.random.default_rng(0)
    *given, results = shape
    data, weights = (np.uint8, np.int8) if ways is BYTES else (np.float32, np.float32)
    weight = random.integers(-9, 9, (results, given[2])).astype(weights)
    x = random.integers(0, 255, given).astype(data)
    sessions = [session(model(shape, way, weight), options.threads) for way in ways.values()]
    spent = medians(sessions, {"x": x}, options.seconds)
    times = zip(ways, spent, strict=True)
    return ", ".join(f"{way} {ms:.2f} ms ({spent[0] / ms:.2f})" for way, ms in times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each line")
    options = parser.parse_args()
    for name, shape in SHAPES.items():
        print(f"{name}, floats: {line(shape, FLOATS, options)}", flush=True)
        print(f"{name}, bytes: {line(shape, BYTES, options)}", flush=True)


if __name__ == "__main__":
    main()
