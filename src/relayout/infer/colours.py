"""The layout of every tensor of a model as given, inferred from its operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.read import NodeView, constant_of, is_op, perm_of, rank_of, view_of
from relayout.graph.region import KERNEL_DOMAIN, subgraphs_of
from relayout.infer.nearest import Found, nearest_known
from relayout.infer.transmission import Transmission, majority, transmit
from relayout.layout.layout import NCHW, Colour, Layout, channels_first, channels_last
from relayout.layout.permutation import Permutation
from relayout.ops.known_layouts import (
    carried,
    coloured,
    known_colours,
    plain,
    preferred,
)
from relayout.ops.registry import facts_named
from relayout.targets.channels_last import KERNELS

Pair = tuple[ir.Value, Colour]


class Look(Enum):
    """Where the layout of a Reshape's result is inferred from if no consumer fixes it.

    The same holds for all operators whose results have axes of their own.
    """

    BEFORE = "before"
    AFTER = "after"
    NEAREST = "nearest"

    @property
    def summary(self) -> str:
        """What it goes by."""
        return _SUMMARIES[self]


_SUMMARIES = {
    Look.BEFORE: "what comes before it",
    Look.AFTER: "the next known operator after it",
    Look.NEAREST: "the known operator that is nearer",
}


def look_of(name: str) -> Look:
    """The look of a name."""
    try:
        return Look(name)
    except ValueError:
        known = ", ".join(look.value for look in Look)
        raise RelayoutError(f"one can look {known}, not {name!r}") from None


@dataclass(frozen=True, slots=True)
class ColouredNode:
    """A node with what is known from it: colours by itself, or which values are coloured alike."""

    view: NodeView
    known: Sequence[Pair]
    alike: Sequence[ir.Value]
    order: Permutation | None
    """The order of a Transpose."""

    @classmethod
    def by(cls, view: NodeView) -> ColouredNode:
        known = _kernel_colours(view) or known_colours(view)
        order = perm_of(view.node) if is_op(view.node, "Transpose") else None
        return cls(view, known, carried(view) if not known else (), order)

    @property
    def operands(self) -> list[ir.Value]:
        return [value for value in self.view.node.inputs if value is not None]

    @property
    def passes(self) -> bool:
        """Whether it is agnostic: its results have the axes of its operands."""
        return bool(self.alike) or self.order is not None


def infer_colours(
    views: Iterable[NodeView], look: Look = Look.BEFORE
) -> Transmission[ir.Value, Colour]:
    """Colour every operand and result of nodes in topological order."""
    operators = [ColouredNode.by(view) for view in views]
    return transmit(operators, _sources(operators), _LookPalette(operators, look))


def views_of(model: ir.Model) -> Iterator[NodeView]:
    """Every node of a model, those of its bodies before the node itself."""
    yield from _nested(model.graph, model.graph.opset_imports)
    for function in model.functions.values():
        if function.domain != KERNEL_DOMAIN:
            yield from _nested(function.graph, function.opset_imports)


def _nested(graph: ir.Graph, opsets: Mapping[str, int]) -> Iterator[NodeView]:
    """The file format bounds how deep bodies are nested."""
    for node in graph:
        for body in subgraphs_of(node):
            yield from _nested(body, opsets)
        yield view_of(node, opsets)


def _sources(operators: Sequence[ColouredNode]) -> list[ir.Value]:
    made = {value for operator in operators for value in operator.view.node.outputs}
    read = dict.fromkeys(value for operator in operators for value in operator.operands)
    return [value for value in read if value not in made]


def _kernel_colours(view: NodeView) -> list[Pair]:
    """The colours that an operator of the domain relayout, which reads channels last, fixes."""
    kernel = KERNELS.get(view.op_type) if view.node.domain == KERNEL_DOMAIN else None
    if kernel is None:
        return []
    layouts = {0: channels_last(kernel.rank)}
    weight = facts_named("", kernel.operator.op_type).layout.weight
    if weight is not None:
        operand, axes = weight
        standard = Layout(axes + channels_first(kernel.rank).axes[2:])
        layouts[operand] = standard.stored(kernel.weight_order)
    return coloured(view, layouts)


class _LookPalette:
    def __init__(self, operators: Sequence[ColouredNode], look: Look) -> None:
        self.preferred: dict[ir.Value, Colour] = {}
        self.bound: set[ir.Value] = set()
        """Values from which a path leads to an operator that is not agnostic."""
        for operator in reversed(operators):
            colour = preferred(operator.view)
            if colour is not None:
                self.preferred[operator.operands[0]] = colour
            results = operator.view.node.outputs
            if not operator.passes or any(value in self.bound for value in results):
                self.bound.update(operator.operands)
        self.later = {} if look is Look.BEFORE else _seen_later(operators, look)

    def results(self, operator: ColouredNode) -> Sequence[ir.Value]:
        return operator.view.node.outputs

    def known(self, operator: ColouredNode) -> Sequence[Pair]:
        return operator.known

    def elect(self, votes: Sequence[Colour]) -> Colour:
        """Colours that name axes go before those that do not."""
        return majority([colour for colour in votes if colour.layout is not None] or votes)

    def before(self, operator: ColouredNode, colours: dict[ir.Value, Colour]) -> Iterator[Pair]:
        result = colours.get(operator.view.node.outputs[0]) if operator.passes else None
        if result is None:
            return
        if operator.order is not None:
            yield (
                operator.operands[0],
                _transposed(result, operator.order.inverse(), operator.operands[0]),
            )
            return
        for value in operator.alike:
            yield value, _kept(result, value)

    def default(self, value: ir.Value) -> Colour:
        if value in self.preferred:
            return self.preferred[value]
        is_given = constant_of(value) is None and not value.is_initializer()
        if is_given and rank_of(value) == NCHW.rank and value not in self.bound:
            return Colour.named(NCHW)
        return plain(value)

    def after(self, operator: ColouredNode, colours: dict[ir.Value, Colour]) -> Iterator[Pair]:
        if operator.order is not None:
            result = operator.view.node.outputs[0]
            yield result, _transposed(colours[operator.operands[0]], operator.order, result)
            return
        read = [colours[value] for value in operator.operands if value in operator.alike]
        for value in operator.view.node.outputs:
            if read and value in operator.alike:
                yield value, _kept(self.elect(read), value)
            else:
                yield value, self.later.get(value) or plain(value)

    def wanted(self, operator: ColouredNode, colours: dict[ir.Value, Colour]) -> Iterator[Pair]:
        """Only where both name axes: to name the axes of a tensor moves no data."""
        results = set(operator.view.node.outputs)
        if operator.known:
            pairs = [pair for pair in operator.known if pair[0] not in results]
        elif operator.alike:
            result = colours[operator.view.node.outputs[0]]
            pairs = [(value, result) for value in operator.alike if value not in results]
        else:
            pairs = []
        yield from (p for p in pairs if p[1].layout and colours[p[0]].layout)


def _seen_later(operators: Sequence[ColouredNode], look: Look) -> dict[ir.Value, Colour]:
    """For results with axes of their own, what the nearest known operator after them reads."""
    known = [bool(operator.known) for operator in operators]
    before, after = _neighbours(operators)
    later = nearest_known(reversed(range(len(operators))), after, known)
    earlier = nearest_known(range(len(operators)), before, known)
    found: dict[ir.Value, Colour] = {}
    for operator, near, other in zip(operators, later, earlier, strict=True):
        if near is None or operator.passes or operator.known:
            continue
        if look is Look.AFTER or _is_nearer(near, other):
            found.update(_as_read_by(operators[near[1]], operator.view.node.outputs))
    return found


def _neighbours(operators: Sequence[ColouredNode]) -> tuple[list[list[int]], list[list[int]]]:
    """The operators that make what each operator reads, and those that read what it makes."""
    makers = {v: index for index, o in enumerate(operators) for v in o.view.node.outputs}
    before = [[makers[value] for value in o.operands if value in makers] for o in operators]
    after: list[list[int]] = [[] for _ in operators]
    for reader, producers in enumerate(before):
        for producer in producers:
            after[producer].append(reader)
    return before, after


def _as_read_by(known: ColouredNode, values: Iterable[ir.Value]) -> Iterator[Pair]:
    _, colour = known.known[0]
    for value in values:
        if colour.layout is not None and rank_of(value) == colour.layout.rank:
            yield value, colour


def _is_nearer(one: Found, other: Found | None) -> bool:
    return other is None or one[0] < other[0]


def _kept(colour: Colour, value: ir.Value) -> Colour:
    return plain(value) if colour.layout is None else colour


def _transposed(colour: Colour, order: Permutation, value: ir.Value) -> Colour:
    """The colour of a value that is the transpose of one with this colour."""
    if colour.layout is None or colour.layout.rank != order.rank:
        return plain(value)
    return Colour.named(colour.layout.stored(order))
