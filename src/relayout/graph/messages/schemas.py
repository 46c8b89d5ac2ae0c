"""Nodes against the definitions of their operators: what no runtime would load is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import onnx
from onnx.defs import OpSchema

from relayout.errors import BadModelError, quoted
from relayout.graph.messages.walk import Body, described, nested_bodies
from relayout.graph.read import schema_of, version_of

_SINGLE = OpSchema.FormalParameterOption.Single
_VARIADIC = OpSchema.FormalParameterOption.Variadic


LEFT_OUT = {("Resize", 1), ("Resize", 2)}
"""Operands that old definitions ask for, though runtimes do without: the region and the scales."""


def check_nodes(model: onnx.ModelProto, *, strictly: bool = False) -> None:
    """Refuse nodes with operands, results or attributes that their operators cannot do with.

    Operators that onnx does not know may have any. Attributes that an operator can do without may
    be of a wrong type, for who leaves such a node alone, but not `strictly`.
    """
    holders: list[tuple[onnx.ModelProto | onnx.FunctionProto, Body]] = [(model, model.graph)]
    holders += [(function, function) for function in model.functions]
    own = {(function.domain, function.name) for function in model.functions}
    for holder, body in holders:
        opsets = {entry.domain: entry.version for entry in holder.opset_import}
        for inner in nested_bodies(body):
            for node in inner.node:
                if (node.domain, node.op_type) not in own:
                    _check(node, opsets, strictly=strictly)


def _check(node: onnx.NodeProto, opsets: Mapping[str, int], *, strictly: bool) -> None:
    schema = schema_of(node.op_type, version_of(opsets, node.domain), node.domain)
    fault = None if schema is None else next(_faults(node, schema, strictly=strictly), None)
    if fault is not None:
        raise BadModelError(f"{described(node)} {fault}")


def _faults(node: onnx.NodeProto, schema: OpSchema, *, strictly: bool) -> Iterator[str]:
    operands, results = _count(node.input), len(node.output)
    if not schema.min_input <= operands <= schema.max_input:
        yield f"has {operands} of {_range(schema.min_input, schema.max_input)} operands"
    if not schema.min_output <= results <= schema.max_output:
        yield f"has {results} of {_range(schema.min_output, schema.max_output)} results"
    for index, name in enumerate(node.input[:operands]):
        if not name and _is_needed(schema, index) and (node.op_type, index) not in LEFT_OUT:
            yield f"leaves out operand {index}, which it needs"
    given = {attribute.name for attribute in node.attribute}
    for name, required, kind in _attributes(schema):
        if required or (strictly and name in given):
            yield from _attribute_faults(node, name, kind)


_Attributes: TypeAlias = tuple[tuple[str, bool, int], ...]


@lru_cache(maxsize=4096)
def _attributes(schema: OpSchema) -> _Attributes:
    """The attributes of an operator: their names, whether they are required, their types."""
    declared: Mapping[str, Any] = schema.attributes
    return tuple((name, each.required, each.type.value) for name, each in declared.items())


def _attribute_faults(node: onnx.NodeProto, name: str, kind: int) -> Iterator[str]:
    """What is wrong with an attribute that an operator reads."""
    given = [attribute for attribute in node.attribute if attribute.name == name]
    if len(given) != 1:
        yield f"has {len(given)} attributes {quoted(name)}, of which it needs one"
    elif not given[0].ref_attr_name and given[0].type != kind:
        yield f"has an attribute {quoted(name)} of another type than it needs"


def _count(names: Sequence[str]) -> int:
    """How many operands there are, without those left out at the end."""
    return max((place for place, name in enumerate(names, 1) if name), default=0)


def _range(fewest: int, most: int) -> str:
    return str(fewest) if fewest == most else f"{fewest} to {most}"


def _is_needed(schema: OpSchema, index: int) -> bool:
    """Whether the operand at a place may not be left out."""
    parameter = schema.inputs[min(index, len(schema.inputs) - 1)]
    if parameter.option == _VARIADIC:
        return bool(parameter.is_homogeneous)
    return bool(parameter.option == _SINGLE)
