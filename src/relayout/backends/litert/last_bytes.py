"""The last bytes of a quantised model that computes its results from them in floats.

Such results lie on no steps, and a step at the last quantiser may change all of them: a norm, a
softmax. So two things are compared: what the last quantisers give, in their steps; and the results
with what ONNX Runtime makes of exactly what those gave in LiteRT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from relayout.backends.litert.flat_graph import FlatGraph, FlatTensor
from relayout.verify.difference import TOLERANCES, Tolerance, difference
from relayout.verify.interface import Interface
from relayout.verify.runtimes import ONNX_RUNTIME, Derived, Run, derived, read


@dataclass(frozen=True, slots=True)
class LastBytes:
    """A file that gives its last bytes too, as floats after its outputs."""

    file: Path
    steps: Mapping[str, float]
    """By name, the steps of these floats."""

    def to_json(self) -> dict[str, Any]:
        return {"file": str(self.file.resolve()), "steps": dict(self.steps)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LastBytes:
        return cls(Path(data["file"]), data["steps"])


def last_steps(graph: FlatGraph) -> dict[FlatTensor, float]:
    """By tensor of floats that stands for bytes and leads to outputs through floats, its step."""
    makers = {tensor: each for each in graph.operators for tensor in each.outputs}
    found: dict[FlatTensor, float] = {}
    seen, waiting = set(graph.outputs), list(graph.outputs)
    while waiting:
        maker = makers.get(tensor := waiting.pop())
        read_here = [] if maker is None else [each for each in maker.inputs if each is not None]
        if maker is not None and maker.builtin == "DEQUANTIZE":
            (source,) = read_here
            found |= {tensor: source.steps.scales[0]} if source.steps is not None else {}
            continue
        waiting += [each for each in read_here if each not in seen]
        seen.update(read_here)
    return found


def giving(graph: FlatGraph, tensors: Sequence[FlatTensor]) -> FlatGraph:
    """A graph with more outputs."""
    kept = [tensor for tensor in tensors if tensor not in graph.outputs]
    return FlatGraph(graph.inputs, (*graph.outputs, *kept), graph.operators)


def exposed(given: Path, names: Sequence[str]) -> Derived:
    """The model with more outputs."""
    model = read(given)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return derived(model, given)


@dataclass(frozen=True, slots=True)
class FloatTail:
    """What a model makes of its last bytes."""

    run: Run
    names: Sequence[str]

    @classmethod
    def of(cls, given: Path, names: Sequence[str], interface: Interface) -> FloatTail | None:
        """None where the given model has no tensors of these names."""
        model = read(given)
        made = {name for node in model.graph.node for name in node.output}
        if not made.issuperset(names):
            return None
        _cut(model.graph, set(names))
        return cls(ONNX_RUNTIME.load(derived(model, given), interface), names)

    def agrees(
        self, feeds: Mapping[str, Any], results: Sequence[Any], last: Sequence[Any], asked: Any
    ) -> bool:
        """Whether results are what it makes of the last bytes."""
        wanted = self.run({**feeds, **dict(zip(self.names, last, strict=True))})
        tolerance = Tolerance(TOLERANCES, asked)
        pairs = zip(wanted, results, strict=True)
        return all(difference(one, other, tolerance).excused for one, other in pairs)


def _cut(graph: onnx.GraphProto, names: set[str]) -> None:
    """Let tensors of floats be inputs of a graph."""
    makers = [node for node in graph.node if names.intersection(node.output)]
    for node in makers:
        graph.node.remove(node)
    kind = onnx.TensorProto.FLOAT
    graph.input.extend(onnx.helper.make_tensor_value_info(n, kind, None) for n in sorted(names))


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two files gave the same results to the bit."""
    return all(np.array_equal(*pair, equal_nan=True) for pair in zip(one, other, strict=True))
