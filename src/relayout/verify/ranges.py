"""What values inputs may have, read off the operators that they reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import onnx

from relayout.verify.equations import SolvedLengths
from relayout.verify.proof.lengths import Length, plus, replaced
from relayout.verify.shapes.symbolic import Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.interface import Port

Bounds: TypeAlias = tuple[Length, Length]
"""The lowest value, and the first one too high."""

MOVES = frozenset(
    (
        *("Cast", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Split"),
        *("Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
"""Operators whose results hold elements of their data."""
NONE, ONE, TWO, FEW = 0, 1, 2, 4
HERTZ = 16_000
"""How often a second sound is sampled, where a model leaves that open."""


@dataclass
class Values:
    """By input: ranges of its elements, all of its elements, or that none is negative."""

    ranges: dict[str, list[Bounds]] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    """Shapes that tensors are given, by the rank of the tensor."""
    positive: set[str] = field(default_factory=set)
    lengths: SolvedLengths = field(default_factory=SolvedLengths)
    fed: dict[str, list[str]] = field(default_factory=dict)
    """Inputs whose elements are lengths that others depend on."""

    @classmethod
    def of(
        cls, graph: onnx.GraphProto, shapes: Shapes, ports: Sequence[Port], lengths: SolvedLengths
    ) -> Values:
        asked = lengths.names
        fed = {name: parts for name, parts in shapes.fed.items() if not asked.isdisjoint(parts)}
        found = cls(lengths=lengths, fed=fed)
        sources = {port.name: {port.name} for port in ports}
        for node in graph.node:
            found._look(node, shapes, sources)
            if node.op_type in MOVES:
                data = node.input if node.op_type == "Concat" else node.input[:1]
                reached = {name for one in data for name in sources.get(one, ())}
                sources.update((name, reached) for name in node.output if reached)
        return found

    def range_under(self, name: str, binding: Mapping[str, int]) -> tuple[int, int] | None:
        """The values that all operators take."""
        known = [
            (replaced(low, binding), replaced(high, binding))
            for low, high in self.ranges.get(name, ())
        ]
        lows = [low for low, _ in known if isinstance(low, int)]
        highs = [high for _, high in known if isinstance(high, int)]
        if not lows or not highs or max(lows) >= min(highs):
            return None
        return max(lows), min(highs)

    def lengths_under(self, binding: Mapping[str, int]) -> dict[str, list[int]]:
        """The elements of inputs that are lengths."""
        numbers = self.lengths.completed(binding) if self.fed else {}
        return {name: [numbers.get(one, ONE) for one in parts] for name, parts in self.fed.items()}

    def _look(self, node: onnx.NodeProto, shapes: Shapes, sources: Mapping[str, set[str]]) -> None:
        for i, operand in enumerate(node.input):
            for name in sorted(sources.get(operand, ())):
                self._use(node, i, name, operand, shapes)

    def _use(self, node: onnx.NodeProto, i: int, name: str, operand: str, shapes: Shapes) -> None:
        if (node.op_type, i) in POSITIVE:
            self.positive.add(name)
        if (node.op_type, i) == ("Reshape", 1) and operand == name:
            self.targets[name] = len(shapes.of_input(node, 0) or ())
        rule = RULES.get((node.op_type, i))
        found = rule(node, shapes) if rule is not None else None
        if found is not None:
            self.ranges.setdefault(name, []).append(found)


def _along_axis(node: onnx.NodeProto, shapes: Shapes) -> Bounds | None:
    """Places along an axis of the data."""
    dims = shapes.of_input(node, 0)
    if not dims:
        return None
    axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
    length = dims[axis % len(dims)]
    return None if length is None else (NONE, length)


def _count(node: onnx.NodeProto, shapes: Shapes) -> Bounds | None:
    """At least one element along an axis, the last one unless another is named."""
    dims = shapes.of_input(node, 0)
    if not dims:
        return None
    axis = next((one.i for one in node.attribute if one.name == "axis"), -1)
    length = dims[axis % len(dims)]
    return (ONE, TWO) if length is None else (ONE, plus(length, ONE))


def _axis(node: onnx.NodeProto, shapes: Shapes) -> Bounds | None:
    dims = shapes.of_input(node, 0)
    return (NONE, len(dims)) if dims else None


def _room(node: onnx.NodeProto, shapes: Shapes) -> Bounds | None:
    """Where an update can begin that is to end inside; at the beginning if lengths are open."""
    dims, update = shapes.of_input(node, 0), shapes.of_input(node, 1)
    if not dims or not update:
        return None
    axis = next((one.i for one in node.attribute if one.name == "axis"), -2)
    places, length = dims[axis % len(dims)], update[axis % len(update)]
    if not isinstance(places, int) or not isinstance(length, int):
        return NONE, ONE
    return NONE, max(places - length, NONE) + ONE


def _tuples(node: onnx.NodeProto, shapes: Shapes) -> Bounds | None:
    """Places along several axes, of which the shortest counts."""
    dims = shapes.of_input(node, 0) or ()
    known = [dim for dim in dims if isinstance(dim, int)]
    return (NONE, min(known)) if known and len(known) == len(dims) else None


def _depth(node: onnx.NodeProto, shapes: Shapes) -> Bounds | None:
    depth = shapes.fixed(node, 1)
    return (NONE, depth[0]) if depth else None


def _of(low: Length, high: Length) -> Callable[[onnx.NodeProto, Shapes], Bounds | None]:
    return lambda _node, _shapes: (low, high)


def _places_in(table: int) -> Callable[[onnx.NodeProto, Shapes], Bounds | None]:
    def found(node: onnx.NodeProto, shapes: Shapes) -> Bounds | None:
        dims = shapes.of_input(node, table)
        return (NONE, dims[0]) if dims and dims[0] is not None else None

    return found


REDUCED = (*("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"),)

RULES: dict[tuple[str, int], Callable[[onnx.NodeProto, Shapes], Bounds | None]] = {
    ("ConstantOfShape", 0): _of(ONE, FEW),
    ("CumSum", 1): _axis,
    ("EmbedLayerNormalization", 0): _places_in(2),
    ("EmbedLayerNormalization", 1): _places_in(4),
    ("Expand", 1): _of(ONE, TWO),
    ("Gather", 1): _along_axis,
    ("GatherElements", 1): _along_axis,
    ("GatherND", 1): _tuples,
    ("MaxRoiPool", 1): _places_in(0),
    ("MelWeightMatrix", 0): _of(ONE, 9),
    ("MelWeightMatrix", 1): _of(16, 33),
    ("MelWeightMatrix", 2): _of(HERTZ, HERTZ + 1),
    ("MelWeightMatrix", 3): _of(NONE, 100),
    ("MelWeightMatrix", 4): _of(HERTZ // 4, HERTZ // 2),
    ("NonMaxSuppression", 2): _of(ONE, FEW),
    ("NonMaxSuppression", 3): _of(NONE, ONE),
    ("OneHot", 0): _depth,
    ("OneHot", 1): _of(TWO, 9),
    ("Pad", 1): _of(NONE, FEW),
    ("Pad", 3): _axis,
    ("RoiAlign", 2): _places_in(0),
    ("ScatterElements", 1): _along_axis,
    ("ScatterND", 1): _tuples,
    ("Tile", 1): _of(ONE, FEW),
    ("Slice", 3): _axis,
    ("Squeeze", 1): _axis,
    ("TensorScatter", 2): _room,
    ("TopK", 1): _count,
    **{(f"Reduce{kind}", 1): _axis for kind in REDUCED},
}
POSITIVE = frozenset((("BatchNormalization", 4), ("Log", 0), ("Sqrt", 0), ("Upsample", 1)))
"""Operands that are not negative."""
