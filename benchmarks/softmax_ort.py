"""Softmax along the last axis and along another in ONNX Runtime: python -m benchmarks.softmax_ort

One line per shape of attention scores: the median time along the last axis, along the one before
it, and between two Transposes that bring that one to the end, run alternately, with their ratios.
"""

from __future__ import annotations

import argparse

import numpy as np
import onnx

from benchmarks.einsum_ort import medians, session

SHAPES = {
    "12 heads, 128 tokens": (1, 12, 128, 128),
    "3 heads, 197 tokens": (1, 3, 197, 197),
    "64 windows, 3 heads, 49 tokens": (64, 3, 49, 49),
    "12 heads, 512 tokens": (1, 12, 512, 512),
}


def model(shape: tuple[int, ...], body: str) -> onnx.ModelProto:
    dims = ",".join(map(str, shape))
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[{dims}] x) => (float[{dims}] y) {{ {body} }}"""
    )


WAYS = (
    "y = Softmax<axis=-1>(x)",
    "y = Softmax<axis=-2>(x)",
    """t = Transpose<perm=[0,1,3,2]>(x)
       s = Softmax<axis=-1>(t)
       y = Transpose<perm=[0,1,3,2]>(s)""",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each shape")
    options = parser.parse_args()
    for name, shape in SHAPES.items():
        sessions = [session(model(shape, way), options.threads) for way in WAYS]
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        last, other, spelt_out = medians(sessions, {"x": x}, options.seconds)
        print(
            f"{name}: last axis {last:.2f} ms, another axis {other:.2f} ms ({other / last:.1f}), "
            f"between Transposes {spelt_out:.2f} ms ({spelt_out / last:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
