"""Bytes channels last in ONNX Runtime: python -m benchmarks.channels_last_ort

A quantised network as TensorFlow exporters write it, before and after `--target ort`: the time of
one run, and how many times faster the second is, with the runtime's own optimiser and without.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from relayout.api import optimize

LAYERS = 6
RUNS = 15
SIZES = ((32, 56), (64, 28), (128, 14))
"""Channels, and the length of both sides of the image."""
LEVELS = {
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "default": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def network(channels: int, side: int, *, pools: bool) -> onnx.ModelProto:
    """Convolutions of 3 by 3, each wrapped in Transposes, perhaps with a pool after each."""
    random = np.random.default_rng(0)
    constants: dict[str, npt.NDArray[Any]] = {
        "s": np.asarray(0.1, np.float32),
        "z": np.asarray(3, np.uint8),
        "ws": np.asarray(0.01, np.float32),
        "wz": np.asarray(0, np.int8),
    }
    nodes, last = [], "x"
    for layer in range(LAYERS):
        shape = (channels, channels, 3, 3)
        constants[f"w{layer}"] = random.integers(-10, 10, shape).astype(np.int8)
        operands = [f"a{layer}", "s", "z", f"w{layer}", "ws", "wz", "s", "z"]
        nodes += [
            helper.make_node("Transpose", [last], [f"a{layer}"], perm=[0, 3, 1, 2]),
            helper.make_node("QLinearConv", operands, [f"b{layer}"], pads=[1] * 4),
        ]
        if pools:
            named = {"kernel_shape": [3, 3], "pads": [1] * 4}
            pool = helper.make_node("MaxPool", [f"b{layer}"], [f"p{layer}"])
            pool.attribute.extend(helper.make_attribute(*each) for each in named.items())
            nodes.append(pool)
        made = f"{'p' if pools else 'b'}{layer}"
        nodes.append(helper.make_node("Transpose", [made], [f"c{layer}"], perm=[0, 2, 3, 1]))
        last = f"c{layer}"
    image = [1, side, side, channels]
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, image)],
        [helper.make_tensor_value_info(last, TensorProto.UINT8, image)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def seconds(models: list[onnx.ModelProto], level: ort.GraphOptimizationLevel) -> list[float]:
    """The best of several runs of each model, run alternately."""
    options = ort.SessionOptions()
    options.graph_optimization_level, options.intra_op_num_threads = level, 1
    providers = ["CPUExecutionProvider"]
    sessions = [
        ort.InferenceSession(model.SerializeToString(), options, providers=providers)
        for model in models
    ]
    dims = models[0].graph.input[0].type.tensor_type.shape.dim
    shape = [dim.dim_value for dim in dims]
    feeds = {"x": np.random.default_rng(1).integers(0, 100, shape).astype(np.uint8)}
    best = [float("inf")] * len(models)
    for _ in range(RUNS):
        for index, session in enumerate(sessions):
            since = time.perf_counter()
            session.run(None, feeds)
            best[index] = min(best[index], time.perf_counter() - since)
    return best


def main() -> None:
    for pools in (False, True):
        for channels, side in SIZES:
            given = network(channels, side, pools=pools)
            result = optimize(given, target="ort")
            counts = f"{result.before.transposes} -> {result.after.transposes} Transposes"
            what = f"{channels} channels, {side}x{side}{', pools' if pools else ''}: {counts}"
            for name, level in LEVELS.items():
                before, after = seconds([given, result.model], level)
                times = f"{before * 1e3:.2f} -> {after * 1e3:.2f} ms"
                print(f"{what}; optimiser {name}: {times}, {before / after:.2f} times as fast")


if __name__ == "__main__":
    main()
