"""Chains of Transpose and Relu: python -m benchmarks.chain [NODES ...]

Prints the CPU seconds to read, optimise and write chains of growing length, and how the time per
node changes from one length to the next (1.0: time grows in proportion). The times are kept, in
units of a fixed piece of Python, and compared with those of the last run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from benchmarks.kept import compared, yardstick
from relayout.api import optimize

SIZES = (1_000, 10_000, 100_000)


def chain(nodes: int) -> onnx.ModelProto:
    """Two Transposes, a Relu, two Transposes, a Relu, ..."""
    made, last = [], "x"
    for index in range(nodes):
        name = f"v{index}"
        if index % 3 == 2:
            made.append(helper.make_node("Relu", [last], [name]))
        else:
            made.append(helper.make_node("Transpose", [last], [name], perm=[0, 2, 1]))
        last = name
    shape = [2, 3, 4]
    graph = helper.make_graph(
        made,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or SIZES
    before = None
    figures: dict[str, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            given = Path(folder) / "chain.onnx"
            given.write_bytes(chain(size).SerializeToString())
            start = time.process_time()
            result = optimize(given, Path(folder) / "out.onnx", verify=False)
            seconds = time.process_time() - start
        per_node = seconds / size
        figures[f"{size} nodes"] = seconds / yardstick()
        growth = "" if before is None else f", {per_node / before:.2f} times as long per node"
        print(
            f"{size} nodes: {seconds:.2f} s of CPU, "
            f"{result.before.transposes} -> {result.after.transposes} Transposes{growth}"
        )
        before = per_node
    for line in compared("chain", figures):
        print(line)


if __name__ == "__main__":
    main()
