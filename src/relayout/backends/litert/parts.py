"""The parts of a quantised model, each run on the bytes that ONNX Runtime gave the one before it.

A sum that rounding takes to the other side is a whole step, and a deep network makes many of one:
ONNX Runtime's own levels may agree on fewer elements of its results than a step would allow. Steps
do not add up within a part, that is from some quantisers to the next ones: a file whose parts all
give the bytes of the model computes what the model does, and one with a wrong part shows it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from relayout.backends.litert.flat_graph import FlatGraph, FlatShape, FlatTensor
from relayout.backends.litert.last_bytes import exposed
from relayout.backends.litert.quantised import BYTES, SHIFT, TWIN, value_of
from relayout.backends.litert.steps import within
from relayout.graph.read import shape_of
from relayout.verify.cases import Case
from relayout.verify.difference import Tolerance, difference
from relayout.verify.interface import Interface
from relayout.verify.runtimes import ONNX_RUNTIME, Run

FED = "/fed"
"""Ends the names of inputs that stand for what the part before gives."""
CasesAt: TypeAlias = Callable[[Mapping[str, int]], Sequence[Case]]
"""Inputs for a model, at given lengths of symbols."""
MOST_OFF = 0.25
"""The share of bytes of a part that may be off by a step: a mean of four is a tie that often."""


@dataclass(frozen=True, slots=True)
class LoweredFile:
    """The model that a file was made of, which is the given one in LiteRT's layouts."""

    path: Path
    dims: Mapping[str, int] = field(default_factory=dict)
    """The length at which it was lowered, if the file leaves one open."""

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path.resolve()), "dims": dict(self.dims)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LoweredFile:
        return cls(Path(data["path"]), data["dims"])


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file that gives the last bytes of each part, and reads those of each as inputs."""

    file: Path
    lowered: Sequence[LoweredFile]
    fed: Mapping[str, str]
    """By input of the file that the given model lacks, the value of that model it stands for."""
    ends: Mapping[str, str]
    """By result of the file, the value of that model that it holds."""

    def to_json(self) -> dict[str, Any]:
        lowered = [each.to_json() for each in self.lowered]
        names = {"fed": dict(self.fed), "ends": dict(self.ends)}
        return {"file": str(self.file.resolve()), "lowered": lowered, **names}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PartFile:
        lowered = tuple(map(LoweredFile.from_json, data["lowered"]))
        return cls(Path(data["file"]), lowered, data["fed"], data["ends"])


def ends_of_parts(graph: FlatGraph, model: ir.Model) -> dict[FlatTensor, str]:
    """By tensor of bytes that a model has too, the value of the model."""
    values = {value.name: value for node in model.graph for value in node.outputs}
    made = [tensor for operator in graph.operators for tensor in operator.outputs]
    return {
        tensor: name
        for tensor in made
        if tensor.dtype in BYTES and (name := value_of(tensor)) in values
        if _holds_bytes(values[name], tensor.shape)
    }


def _holds_bytes(value: ir.Value, shape: FlatShape) -> bool:
    kind = None if value.dtype is None else value.dtype.numpy()
    return kind in BYTES and shape_of(value) == shape


def cut_into_parts(
    graph: FlatGraph, ends: Mapping[FlatTensor, str]
) -> tuple[FlatGraph, dict[str, str]]:
    """A graph whose operators read inputs where they read the ends of parts; these, by value."""
    fed = {each: replace(each, name=f"{each.name}{FED}") for each in ends}
    operators = [
        replace(each, inputs=tuple(t if t is None else fed.get(t, t) for t in each.inputs))
        for each in graph.operators
    ]
    read = {tensor for operator in operators for tensor in operator.inputs}
    inputs = {each: ends[end] for end, each in fed.items() if each in read}
    more = (end for end in ends if end not in graph.outputs)
    cut = FlatGraph((*graph.inputs, *inputs), (*graph.outputs, *more), operators)
    return cut, {each.name: value for each, value in inputs.items()}


@dataclass(frozen=True, slots=True)
class PartComparison:
    """Each part against the model, both on the bytes of the model."""

    parts: PartFile
    run: Run
    """Runs the file of the parts."""
    steps: Mapping[str, float]
    """By output; 0 where the numbers of an output lie on no steps."""
    tolerance: Tolerance

    @property
    def count(self) -> int:
        return len(self.parts.ends)

    def least(self, cases_at: CasesAt, interface: Interface) -> float:
        """The least share of elements within a step at the end of a part; 0 if others differ."""
        return min(
            self._least(each.path, cases_at(each.dims), interface) for each in self.parts.lowered
        )

    def _least(self, path: Path, cases: Sequence[Case], interface: Interface) -> float:
        inner = [name for name in self._values() if name not in self.steps]
        lowered = ONNX_RUNTIME.load(exposed(path, inner), interface)
        names = [*self.steps, *inner]
        return min(
            self._share(case, dict(zip(names, lowered(case.feeds), strict=True))) for case in cases
        )

    def _values(self) -> list[str]:
        return list(dict.fromkeys((*self.parts.fed.values(), *self.parts.ends.values())))

    def _share(self, case: Case, wanted: Mapping[str, Any]) -> float:
        """`wanted`: what the lowered model computes, by value."""
        fed = {name: _stored(wanted[value], name) for name, value in self.parts.fed.items()}
        ends = [name for name in self.parts.ends if name not in self.steps]
        found = dict(zip((*self.steps, *ends), self.run({**case.feeds, **fed}), strict=True))
        shares = [
            _alike(found[name], _stored(wanted[value], name))
            for name, value in self.parts.ends.items()
        ]
        for (name, step), given in zip(self.steps.items(), case.results, strict=True):
            is_same = self._agree(given, wanted[name])
            share = within(found[name], given, step) if step else self._agree(given, found[name])
            shares.append(share * is_same)
        return min(shares)

    def _agree(self, one: Any, other: Any) -> float:
        return float(difference(one, other, self.tolerance).excused)


def _alike(found: Any, wanted: Any) -> float:
    """The share of bytes within a step; 0 where too many are off at all, as by a wrong shift."""
    off = np.count_nonzero(found != wanted)
    return within(found, wanted, 1.0) if off <= max(1, MOST_OFF * found.size) else 0.0


def _stored(array: Any, name: str) -> Any:
    """Bytes as a tensor of a file holds them."""
    if array.dtype == np.uint8 and name.removesuffix(FED).endswith(TWIN):
        return (array.astype(np.int16) - SHIFT).astype(np.int8)
    return array
