"""How much a model moves data about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import onnx_ir as ir

from relayout.graph.read import constant_of, is_op, shape_of
from relayout.graph.region import Region, regions_of, subgraphs_of

NOMINAL_LENGTH = 32
"""What an unknown length counts as: neither nothing nor so much that it hides the known ones."""

NOMINAL_RUNS = 8
"""How often the body of a loop counts: more than once, or nothing would be moved out of it."""

POINTER_BYTES = 8


class Objective(Enum):
    """What is made least; the other one decides between equals."""

    BYTES = "bytes"
    COUNT = "count"

    @property
    def other(self) -> Objective:
        return Objective.COUNT if self is Objective.BYTES else Objective.BYTES

    @property
    def noun(self) -> str:
        """What is saved."""
        return "bytes" if self is Objective.BYTES else "Transposes"


@dataclass(frozen=True, slots=True)
class Measure:
    """Counts over all graphs of a model.

    Bytes are read plus written, at the place where a Transpose stands, eight times in the body of
    a loop. A length that only the run will tell counts as 32 unless the caller names it.
    """

    transposes: int
    bytes_moved: int
    nodes: int

    def better_than(self, other: Measure, objective: Objective) -> bool:
        """Whether this one wins by the objective, then by the other figure, then by nodes."""
        return self._key(objective) < other._key(objective)

    def _key(self, objective: Objective) -> tuple[int, ...]:
        if objective is Objective.BYTES:
            return (self.bytes_moved, self.transposes, self.nodes)
        return (self.transposes, self.bytes_moved, self.nodes)


def measure(model: ir.Model, dims: Mapping[str, int] | None = None) -> Measure:
    regions = list(regions_of(model))
    transposes = list(moving_transposes(model))
    runs = runs_of(regions)
    moved = sum(
        runs[region.graph] * 2 * bytes_of(node.outputs[0], dims or {})
        for region, node in transposes
    )
    return Measure(len(transposes), moved, sum(len(region.graph) for region in regions))


def runs_of(regions: Iterable[Region]) -> dict[ir.Graph, int]:
    """How often each graph counts as run; outer graphs come first."""
    runs: dict[ir.Graph, int] = {}
    for region in regions:
        here = runs.setdefault(region.graph, 1)
        for node in region.graph:
            times = NOMINAL_RUNS if is_op(node, "Loop", "Scan") else 1
            runs.update((body, here * times) for body in subgraphs_of(node))
    return runs


def moving_transposes(model: ir.Model) -> Iterator[tuple[Region, ir.Node]]:
    """Every Transpose of a value that is not a constant."""
    for region in regions_of(model):
        for node in region.graph:
            if is_op(node, "Transpose") and constant_of(node.inputs[0]) is None:
                yield region, node


def bytes_of(value: ir.Value, dims: Mapping[str, int]) -> int:
    """The size of a value; 0 if not even its rank is known."""
    shape = shape_of(value)
    if shape is None or value.dtype is None:
        return 0
    lengths = [
        length if isinstance(length, int) else dims.get(length or "", NOMINAL_LENGTH)
        for length in shape
    ]
    return math.ceil(math.prod(lengths) * item_bytes(value.dtype))


def item_bytes(dtype: ir.DataType) -> float:
    """The size of one element; a string counts as a pointer."""
    return POINTER_BYTES if dtype == ir.DataType.STRING else dtype.itemsize
