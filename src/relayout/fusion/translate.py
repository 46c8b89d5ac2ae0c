"""ONNX graphs as expressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.fusion.expressions import Expression, Tag
from relayout.graph.read import constant_of, is_op, shape_of
from relayout.graph.region import Region, captured_by, subgraphs_of
from relayout.ops.fusing import Fusing, fuses_as
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
    parameters: list[Expression] = field(default_factory=list)
    results: list[Expression] = field(default_factory=list)
    calls: dict[ir.Node, Expression] = field(default_factory=dict)
    """The call that stands for each node; Constant nodes have none."""
    fusings: dict[ir.Node, Fusing] = field(default_factory=dict)
    values: dict[ir.Value, Expression] = field(default_factory=dict)


def translate(region: Region) -> Translation:
    """Inputs and captured values are parameters; every output is a result."""
    made = Translation(region)
    for value in region.graph.inputs:
        _parameter(value, made)
    for node in region.graph:
        if not is_op(node, "Constant"):
            _call(node, made)
    made.results.extend(_operand(value, made) for value in region.graph.outputs)
    return made


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
    tensor = constant_of(value)
    if tensor is None:
        return _parameter(value, made)
    is_held = not tuple(tensor.shape) and tensor.dtype in HELD_IN_KERNELS
    constant = Expression(
        Tag.CONSTANT,
        shape=tuple(int(length) for length in tensor.shape.numpy()),
        kind=Kind.ELEMENTWISE if is_held else Kind.OPAQUE,
        is_tensor=is_tensor(value),
        name=value.name or "",
        source=value,
    )
    made.values[value] = constant
    return constant


def _expression(tag: Tag, args: Iterable[Expression], value: ir.Value) -> Expression:
    return Expression(
        *(tag, tuple(args), shape_of(value)),
        is_tensor=is_tensor(value),
        name=value.name or "",
        source=value,
    )


def _call(node: ir.Node, made: Translation) -> None:
    fusing = fuses_as(made.region.view(node))
    made.fusings[node] = fusing
    operands = [
        _operand(value, made)
        for place, value in enumerate(node.inputs)
        if value is not None and place not in fusing.parameters
    ]
    if is_op(node, "Concat"):
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
