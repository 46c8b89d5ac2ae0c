"""ONNX graphs as expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from relayout.fusion.codes import Code
from relayout.fusion.dialects import RELAY, GraphDialect
from relayout.fusion.expressions import Expression, Tag
from relayout.fusion.settled import Settled
from relayout.graph.read import Shape, constant_of, is_op, shape_of
from relayout.graph.region import Region, captured_by, subgraphs_of
from relayout.ops.fusing import Fusing
from relayout.ops.kind import Kind

HELD_IN_KERNELS = frozenset(
    {
        ir.DataType.INT32,
        ir.DataType.INT64,
        ir.DataType.FLOAT,
        ir.DataType.DOUBLE,
        ir.DataType.BOOL,
    }
)
"""The types of which a scalar constant is a part of the kernel that reads it."""


@dataclass(slots=True)
class Translation:
    """A graph in expressions, with the way back."""

    region: Region
    settled: Settled
    dialect: GraphDialect = RELAY
    parameters: list[Expression] = field(default_factory=list)
    results: list[Expression] = field(default_factory=list)
    calls: dict[ir.Node, Expression] = field(default_factory=dict)
    """The call that stands for each node; Constants and what runs ahead have none."""
    fusings: dict[ir.Node, Fusing] = field(default_factory=dict)
    values: dict[ir.Value, Expression] = field(default_factory=dict)

    def in_file_order(self) -> Iterator[Expression]:
        """Each call, and then what is read of its results."""
        for node, call in self.calls.items():
            yield call
            yield from (self.values[value] for value in node.outputs if value in self.values)


def translate(
    region: Region, settled: Settled | None = None, dialect: GraphDialect = RELAY
) -> Translation:
    """Inputs and captured values are parameters; every output is a result."""
    made = Translation(region, settled or Settled(), dialect)
    for value in region.graph.inputs:
        _parameter(value, made)
    for node in region.graph:
        if not is_op(node, "Constant") and node not in made.settled.ahead:
            _call(node, made)
    made.results.extend(_operand(value, made) for value in region.graph.outputs)
    made.results.extend(_stopped(made))
    return made


def _stopped(made: Translation) -> Iterator[Expression]:
    """What is handed over through memory because fusing stops there."""
    for node in made.calls:
        if node in made.settled.stops:
            yield from (made.values[value] for value in node.outputs if value in made.values)


def is_tensor(value: ir.Value) -> bool:
    return value.type is None or isinstance(value.type, ir.TensorType)


def _parameter(value: ir.Value, made: Translation) -> Expression:
    expression = _expression(Tag.PARAMETER, (), value)
    made.values[value] = expression
    made.parameters.append(expression)
    return expression


def _operand(value: ir.Value, made: Translation) -> Expression:
    known = made.values.get(value)
    if known is not None:
        return known
    if not made.region.is_constant(value):
        return _parameter(value, made)
    is_held = made.dialect.holds_scalars and is_held_scalar(value, made.region)
    constant = Expression(
        Tag.CONSTANT,
        shape=_constant_shape(value),
        kind=Kind.ELEMENTWISE if is_held else Kind.OPAQUE,
        is_tensor=is_tensor(value),
        name=value.name or "",
        source=value,
    )
    made.values[value] = constant
    return constant


def is_held_scalar(value: ir.Value, region: Region) -> bool:
    """Whether a value is a scalar that is a part of every kernel that reads it."""
    if not region.is_constant(value) or _constant_shape(value) != ():
        return False
    tensor = constant_of(value)
    return (value.dtype if tensor is None else tensor.dtype) in HELD_IN_KERNELS


def _constant_shape(value: ir.Value) -> Shape | None:
    tensor = constant_of(value)
    return shape_of(value) if tensor is None else tuple(int(n) for n in tensor.shape.numpy())


def _expression(tag: Tag, args: Iterable[Expression], value: ir.Value) -> Expression:
    return Expression(
        *(tag, tuple(args), shape_of(value)),
        is_tensor=is_tensor(value),
        name=value.name or "",
        source=value,
    )


def _call(node: ir.Node, made: Translation) -> None:
    fusing = made.dialect.fuses_as(made.region.view(node))
    if node in made.settled.apart:
        fusing = replace(fusing, kind=Kind.OPAQUE, opaque_for=Code.APART)
    made.fusings[node] = fusing
    operands = [
        _operand(value, made)
        for place, value in enumerate(node.inputs)
        if value is not None and place not in fusing.parameters
    ]
    if is_op(node, "Concat") and made.dialect.bundles:
        operands = [Expression(Tag.TUPLE, tuple(operands), is_tensor=False, source=node)]
    tag = Tag.CALL
    if any(True for _body in subgraphs_of(node)):
        tag = Tag.CONTROL
        operands += [_operand(value, made) for value in captured_by(node)]
    _bind_results(node, tag, tuple(operands), made)


def _bind_results(
    node: ir.Node, tag: Tag, operands: tuple[Expression, ...], made: Translation
) -> None:
    """A node with one result is that result; of others each result is a field."""
    named = [value for value in node.outputs if value.name]
    used = [value for value in named if value.uses() or value.is_graph_output()]
    is_one = len(named) <= 1 or (len(used) == 1 and not is_op(node, "Split"))
    only = next(iter(used or named), None) if is_one else None
    call = made.calls[node] = Expression(
        *(tag, operands, shape_of(only), made.fusings[node].kind),
        is_tensor=is_one if only is None else is_tensor(only),
        only_tensors=is_one or all(map(is_tensor, named)),
        name=node.op_type,
        source=node,
    )
    if only is not None:
        made.values[only] = call
    for value in [] if is_one else used:
        made.values[value] = _expression(Tag.FIELD, (call,), value)
