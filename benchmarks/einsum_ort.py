"""Attention with Transposes or with Einsum in ONNX Runtime: python -m benchmarks.einsum_ort

One line per shape: the median time of each, run alternately, and their ratio. What counts is one
layer from the features to the merged heads, with its projections.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import onnx
import onnxruntime

from relayout.api import optimize

SHAPES = {
    "16 tokens, 12 heads of 32": (1, 16, 12, 32),
    "128 tokens, 12 heads of 32": (1, 128, 12, 32),
    "197 tokens, 3 heads of 64": (1, 197, 3, 64),
    "4 x 197 tokens, 3 heads of 64": (4, 197, 3, 64),
    "512 tokens, 12 heads of 64": (1, 512, 12, 64),
}


def attention(batch: int, length: int, heads: int, depth: int) -> onnx.ModelProto:
    features = heads * depth
    weights = ", ".join(f"float[{features},{features}] w{name}" for name in "qkv")
    shape = f"{batch},{length},{features}"
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[{shape}] x, {weights}) => (float[{shape}] y)
        <int64[4] split = {{{batch},{length},{heads},{depth}}}, int64[3] merged = {{{shape}}},
         float scale = {{0.125}}> {{
            q0 = MatMul(x, wq)
            k0 = MatMul(x, wk)
            v0 = MatMul(x, wv)
            q1 = Reshape(q0, split)
            k1 = Reshape(k0, split)
            v1 = Reshape(v0, split)
            q = Transpose<perm=[0,2,1,3]>(q1)
            k = Transpose<perm=[0,2,3,1]>(k1)
            v = Transpose<perm=[0,2,1,3]>(v1)
            s = MatMul(q, k)
            d = Mul(s, scale)
            p = Softmax<axis=-1>(d)
            o = MatMul(p, v)
            t = Transpose<perm=[0,2,1,3]>(o)
            y = Reshape(t, merged)
        }}"""
    )


def session(model: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    data = model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def medians(
    sessions: list[onnxruntime.InferenceSession], feeds: dict[str, Any], seconds: float
) -> list[float]:
    """The median milliseconds of each session; all run alternately."""
    spent: list[list[float]] = [[] for _ in sessions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for times, each in zip(spent, sessions, strict=True):
            start = time.perf_counter()
            each.run(None, feeds)
            times.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(times) for times in spent]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    for name, (batch, length, heads, depth) in SHAPES.items():
        given = attention(batch, length, heads, depth)
        result = optimize(given, minimize="count", einsum=True)
        random = np.random.default_rng(0)
        feeds = {
            value.name: random.normal(
                size=[dim.dim_value for dim in value.type.tensor_type.shape.dim], scale=0.1
            ).astype(np.float32)
            for value in given.graph.input
        }
        sessions = [session(model, options.threads) for model in (given, result.model)]
        transposed, stated = medians(sessions, feeds, options.seconds)
        print(
            f"{name}: {result.before.transposes} Transposes {transposed:.2f} ms, "
            f"{result.after.transposes} Transposes with Einsum {stated:.2f} ms, "
            f"ratio {stated / transposed:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
