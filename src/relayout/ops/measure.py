"""How much data a model moves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.read import Dim, NodeView, Shape, constant_of, is_op, perm_of, rank_of, shape_of
from relayout.graph.region import Region, regions_of, subgraphs_of
from relayout.layout.equation import Equation, copied_elements
from relayout.ops.facts import InnerCopies
from relayout.ops.registry import facts_of

NOMINAL_LENGTH = 32
"""What an unknown length counts as: neither nothing nor so much that it hides the known ones."""

NOMINAL_RUNS = 8
"""How often the body of a loop counts: more than once, or nothing would be moved out of it."""

POINTER_BYTES = 8

SMALLEST_LARGE = 1024
"""Smaller constants are parameters, axes and shapes: what they take does not count."""


class Objective(Enum):
    """What is minimised; the others decide between equals."""

    BYTES = "bytes"
    COUNT = "count"
    TIME = "time"

    @property
    def other(self) -> Objective:
        """What is minimised where this one would give the user more of the other figure."""
        return Objective.COUNT if self is Objective.BYTES else Objective.BYTES

    @property
    def least(self) -> str:
        """What is chosen, in words."""
        return _LEAST[self]

    @property
    def summary(self) -> str:
        return _SUMMARIES[self]


_LEAST = {
    Objective.BYTES: "fewest bytes",
    Objective.COUNT: "fewest Transposes",
    Objective.TIME: "least predicted time",
}
_SUMMARIES = {
    Objective.BYTES: "bytes moved by Transposes",
    Objective.COUNT: "number of Transposes",
    Objective.TIME: "time by the prices of the target, where it has some",
}


def objective_of(name: str | Objective) -> Objective:
    """The objective of a name."""
    try:
        return Objective(name)
    except ValueError:
        known = ", ".join(objective.value for objective in Objective)
        raise RelayoutError(f"unknown objective {name!r}; the objectives are {known}") from None


@dataclass(frozen=True, slots=True)
class Measure:
    """Counts over all graphs of a model.

    Bytes are read plus written where a Transpose is in the graph, eight times in the body of a
    loop. An Einsum counts with the copies that a product of matrices in its place would need, a
    Softmax along another axis than the last with a copy before it and one after. A length that
    is known only at run time counts as 32 unless the caller sets it.
    """

    transposes: int
    bytes_moved: int
    nodes: int
    nanoseconds: int = 0
    """What moves data takes so long by the prices of the target; 0 where it has none."""

    def moves_less_than(self, other: Measure, objective: Objective) -> bool:
        """Whether this one wins by the objective, or else by the other figure."""
        return self._key(objective)[:-1] < other._key(objective)[:-1]

    def better_than(self, other: Measure, objective: Objective) -> bool:
        """Whether this one wins by the objective, then by the other figure, then by nodes."""
        return self._key(objective) < other._key(objective)

    def _key(self, objective: Objective) -> tuple[int, ...]:
        if objective is Objective.BYTES:
            return (self.bytes_moved, self.transposes, self.nodes)
        if objective is Objective.TIME:
            return (self.nanoseconds, self.bytes_moved, self.transposes, self.nodes)
        return (self.transposes, self.bytes_moved, self.nodes)


def measure(model: ir.Model, dims: Mapping[str, int] | None = None) -> Measure:
    regions = list(regions_of(model))
    transposes = [(region, node) for region in regions for node in _moving(region)]
    runs = runs_of(regions)
    moved = sum(runs[region.graph] * bytes_of_move(node, dims or {}) for region, node in transposes)
    moved += sum(
        runs[region.graph] * bytes_inside(region.view(node), dims or {})
        for region in regions
        for node in _copying(region)
    )
    return Measure(len(transposes), moved, sum(len(region.graph) for region in regions))


def runs_of(regions: Iterable[Region]) -> dict[ir.Graph, int]:
    """How often each graph counts as run; outer graphs come first."""
    runs: dict[ir.Graph, int] = {}
    for region in regions:
        here = runs.setdefault(region.graph, 1)
        for node in region.graph:
            times = NOMINAL_RUNS if facts_of(node).repeats else 1
            runs.update((body, here * times) for body in subgraphs_of(node))
    return runs


def moving_transposes(model: ir.Model) -> Iterator[tuple[Region, ir.Node]]:
    """Every Transpose of a value that is not a constant."""
    for region in regions_of(model):
        yield from ((region, node) for node in _moving(region))


def _moving(region: Region) -> list[ir.Node]:
    return [
        node
        for node in region.graph
        if is_op(node, "Transpose") and constant_of(node.inputs[0]) is None
    ]


def bytes_of_move(node: ir.Node, dims: Mapping[str, int]) -> int:
    """What a Transpose reads and writes.

    A number counts on whichever side it is known. A symbol counts as the operand has it: that of a
    result may be the model's own claim, and the same Transpose is to count alike before and after.
    """
    source, result, order = node.inputs[0], node.outputs[0], perm_of(node)
    read, written = shape_of(source), shape_of(result)
    if order is None or read is None or result.dtype is None or len(read) != order.rank:
        return 2 * bytes_of(result, dims)
    claimed = written if written is not None and len(written) == order.rank else ()
    known = dict(zip(order.axes, claimed, strict=False))
    lengths = tuple(known_number(each, known.get(axis)) for axis, each in enumerate(read))
    return 2 * bytes_in(lengths, result.dtype, dims)


def known_number(read: Dim, written: Dim) -> Dim:
    """A length as it is read, unless only the other side of a Transpose knows it as a number."""
    return written if not isinstance(read, int) and isinstance(written, int) else read


def is_large(tensor: ir.TensorProtocol) -> bool:
    return tensor.nbytes >= SMALLEST_LARGE


def bytes_of_constants(model: ir.Model) -> int:
    """What the large constants of all graphs take in a file."""
    stored = [
        tensor
        for region in regions_of(model)
        for value in _stored_in(region.graph)
        if (tensor := value.const_value if value.is_initializer() else constant_of(value))
    ]
    return sum(tensor.nbytes for tensor in stored if is_large(tensor))


def most_axes(model: ir.Model) -> int:
    """The largest rank that is known of an input or a result of any graph."""
    ranks = (
        rank_of(value)
        for region in regions_of(model)
        for values in (region.graph.inputs, *(node.outputs for node in region.graph))
        for value in values
    )
    return max((rank for rank in ranks if rank is not None), default=0)


def _stored_in(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.initializers.values()
    yield from (node.outputs[0] for node in graph if is_op(node, "Constant"))


def copying_nodes(model: ir.Model) -> Iterator[tuple[Region, ir.Node]]:
    """Every node whose kernel may copy its operands into another order."""
    for region in regions_of(model):
        yield from ((region, node) for node in _copying(region))


def _copying(region: Region) -> list[ir.Node]:
    return [node for node in region.graph if facts_of(node).copies is not None]


def bytes_inside(view: NodeView, dims: Mapping[str, int]) -> int:
    """What the kernel of a node copies into another order, as far as it is known to."""
    if facts_of(view.node).copies is InnerCopies.SOFTMAX:
        return bytes_in_softmax(view, view.integer("axis", -1), shape_of(view.node.inputs[0]), dims)
    shapes = [shape_of(value) for value in (*view.node.inputs, *view.node.outputs)]
    return bytes_in_einsum(view.string("equation", ""), shapes, view.dtype(0), dims)


def bytes_in_softmax(
    view: NodeView, axis: int, shape: Shape | None, dims: Mapping[str, int]
) -> int:
    """What is read and written to have rows of a Softmax one after another, and back again.

    Before opset 13 a row is all axes from one on, which lie one after another.
    """
    dtype = view.dtype(0)
    if shape is None or dtype is None or view.version < 13:
        return 0
    inner = shape[axis % len(shape) + 1 :] if shape else ()
    return 0 if all(length == 1 for length in inner) else 2 * 2 * bytes_in(shape, dtype, dims)


def bytes_in_einsum(
    equation: str,
    shapes: Sequence[Shape | None],
    dtype: ir.DataType | None,
    dims: Mapping[str, int],
) -> int:
    """What is read and written to bring the operands of an Einsum, and its result, into the order
    of a product of matrices; 0 if that is unknown. The last shape is that of the result.
    """
    known = [shape for shape in shapes if shape is not None]
    axes = Equation.of(equation).axes([len(shape) for shape in known])
    if dtype is None or axes is None or len(known) < len(shapes):
        return 0
    pairs = [list(zip(term, shape, strict=True)) for term, shape in zip(axes, known, strict=True)]
    lengths = [{letter: _length(length, dims) for letter, length in term} for term in pairs]
    *operands, result = ["".join(letter for letter, n in term if n != 1) for term in pairs]
    made = "".join(letter for letter in result if letter in "".join(operands))
    return math.ceil(2 * copied_elements((*operands, made), lengths) * item_bytes(dtype))


def bytes_of(value: ir.Value, dims: Mapping[str, int]) -> int:
    """The size of a value; 0 if not even its rank is known."""
    shape = shape_of(value)
    if shape is None or value.dtype is None:
        return 0
    return bytes_in(shape, value.dtype, dims)


def bytes_in(shape: Shape, dtype: ir.DataType, dims: Mapping[str, int]) -> int:
    """The size of a tensor of a shape."""
    return math.ceil(math.prod(lengths_of(shape, dims)) * item_bytes(dtype))


def lengths_of(shape: Shape, dims: Mapping[str, int]) -> tuple[int, ...]:
    """Lengths as they count where some are known only at run time."""
    return tuple(_length(length, dims) for length in shape)


def _length(length: Dim, dims: Mapping[str, int]) -> int:
    return length if isinstance(length, int) else dims.get(length or "", NOMINAL_LENGTH)


def item_bytes(dtype: ir.DataType) -> float:
    """The size of one element; a string counts as a pointer."""
    return POINTER_BYTES if dtype == ir.DataType.STRING else dtype.itemsize
