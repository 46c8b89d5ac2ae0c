"""Time to partition large graphs: python -m benchmarks.fuse_scale [OPERATORS [FORM...]]

For graphs of several forms, at a quarter, half and all of the number of operators: CPU seconds for
each mode, kernels, and how the seconds grow with the size (1.00 is linear growth).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from relayout.fusion.partition import RELAYOUT, TVM, partition
from relayout.fusion.traffic import traffic_of
from relayout.graph.region import Region

OPERATORS = 100_000
SHAPE = (1, 8, 16, 16)
MODES = (TVM.name, RELAYOUT.name)
FLOAT = ir.TensorType(ir.DataType.FLOAT)


class Grower:
    """A graph that grows by operators whose results all have one shape."""

    def __init__(self) -> None:
        self.input = ir.Value(name="x", type=FLOAT, shape=ir.Shape(SHAPE))
        weight = ir.tensor(np.zeros((8, 8, 3, 3), np.float32), name="w")
        shape = ir.Shape((8, 8, 3, 3))
        self.weight = ir.Value(name="w", type=FLOAT, shape=shape, const_value=weight)
        self.nodes: list[ir.Node] = []

    def add(self, op_type: str, *operands: ir.Value) -> ir.Value:
        node = ir.node(op_type, operands, name=f"n{len(self.nodes)}")
        self.nodes.append(node)
        (result,) = node.outputs
        result.name, result.type, result.shape = f"v{len(self.nodes)}", FLOAT, ir.Shape(SHAPE)
        return result

    def conv(self, value: ir.Value) -> ir.Value:
        result = self.add("Conv", value, self.weight)
        self.nodes[-1].attributes["pads"] = ir.AttrInt64s("pads", [1, 1, 1, 1])
        return result

    def region(self, result: ir.Value) -> Region:
        graph = ir.Graph(
            [self.input],
            [result],
            nodes=self.nodes,
            initializers=[self.weight],
            opset_imports={"": 21},
        )
        return Region(graph, graph.opset_imports, in_function=False)


def chain(size: int) -> Region:
    grower = Grower()
    value = grower.input
    while len(grower.nodes) < size:
        value = grower.add("Relu", value)
    return grower.region(value)


def residual(size: int) -> Region:
    grower = Grower()
    value = grower.input
    while len(grower.nodes) < size:
        inner = grower.conv(grower.add("Relu", grower.conv(value)))
        value = grower.add("Relu", grower.add("Add", inner, value))
    return grower.region(value)


def nested_skips(size: int) -> Region:
    """Each value on the way down is read again on the way up, as in a U."""
    grower = Grower()
    value, kept = grower.input, []
    while len(grower.nodes) < size // 2:
        value = grower.add("Relu", grower.conv(value))
        kept.append(value)
    for skip in reversed(kept):
        value = grower.add("Add", grower.conv(value), skip)
    return grower.region(value)


def dense(size: int) -> Region:
    """Each value reads the three before it."""
    grower = Grower()
    values = [grower.input]
    while len(grower.nodes) < size:
        values.append(grower.add("Sum", *values[-3:]))
    return grower.region(values[-1])


def fan(size: int) -> Region:
    """One value is read by all, and all are summed up."""
    grower = Grower()
    total = grower.add("Exp", grower.input)
    shared = total
    while len(grower.nodes) < size:
        total = grower.add("Add", total, grower.add("Sqrt", shared))
    return grower.region(total)


FORMS: tuple[Callable[[int], Region], ...] = (chain, residual, nested_skips, dense, fan)


def seconds(form: Callable[[int], Region], size: int, mode: str) -> tuple[float, int]:
    region = form(size)
    started = time.process_time()
    found = partition(region, mode)
    return time.process_time() - started, traffic_of(found).kernels


def main() -> int:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else OPERATORS
    sizes = (size // 4, size // 2, size)
    print(
        f"{'form':14}{'mode':10}" + "".join(f"{each:>10}" for each in sizes) + "  growth  kernels"
    )
    slowest = 0.0
    for form in (each for each in FORMS if each.__name__ in (sys.argv[2:] or each.__name__)):
        for mode in MODES:
            measured = [seconds(form, each, mode) for each in sizes]
            times = [each for each, _kernels in measured]
            growth = math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])
            figures = "".join(f"{each:9.2f}s" for each in times)
            print(f"{form.__name__:14}{mode:10}{figures}{growth:8.2f}{measured[-1][1]:9}")
            slowest = max(slowest, times[-1])
    print(f"{size} operators take at most {slowest:.1f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
