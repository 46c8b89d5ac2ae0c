"""Nodes that differ from a given one in one detail, most of which give other numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import onnx

from tests.samples.sample import Array, Sample, versions

FLAGS = frozenset({"channels_last", "keepdims", "layout", "noop_with_empty_axes", "unidirectional"})
NOT_RUN = frozenset({"num_outputs", "blocksize"})
"""Attributes with whose other values onnx's inference aborts."""
TEXTS = {
    "approximate": ("tanh",),
    "auto_pad": ("VALID", "SAME_UPPER", "SAME_LOWER"),
    "coordinate_transformation_mode": ("asymmetric", "align_corners", "pytorch_half_pixel"),
    "direction": ("RIGHT", "reverse", "bidirectional"),
    "nearest_mode": ("floor", "ceil", "round_prefer_ceil"),
    "reduction": ("add", "mul", "max"),
}
"""Values of attributes that are texts."""
MODES = {
    "DepthToSpace": ("DCR", "CRD"),
    "Pad": ("reflect", "edge", "wrap"),
    "Resize": ("linear", "cubic"),
    "Upsample": ("linear",),
}
OF_COM_MICROSOFT = {
    "activation": "Relu",
    "alpha": 0.5,
    "beta": 0.5,
    "ceil_mode": 1,
    "channels_last": 1,
    "count_include_pad": 1,
    "epsilon": 0.25,
    "mask_filter_value": -0.5,
    "scale": 0.25,
    "transA": 1,
    "transB": 1,
    "transBatchA": 1,
    "transBatchB": 1,
    "unidirectional": 1,
}
"""Attributes of operators that no schema of the standard knows."""


def changed(sample: Sample) -> Iterator[Sample]:
    yield from _other_attributes(sample)
    yield from _other_operands(sample)
    for version in () if sample.domain else versions(sample.op_type):
        if version != sample.version:
            yield replace(sample, version=version)


def _other_attributes(sample: Sample) -> Iterator[Sample]:
    given = dict(sample.attributes)
    for name, value in given.items():
        yield replace(sample, attributes={n: v for n, v in given.items() if n != name})
        # With fewer outputs than it has, onnx's inference of a Split aborts.
        for other in () if name in NOT_RUN else _others(sample.op_type, name, value):
            yield replace(sample, attributes={**given, name: other})
    for name, others in _left_out(sample):
        for other in others:
            yield replace(sample, attributes={**given, name: other})


def _others(op_type: str, name: str, value: Any) -> Iterator[Any]:
    """Other values of an attribute; none is 0 that was not."""
    if name in FLAGS:
        yield 1 - value
    elif isinstance(value, int | float):
        yield from (value + 1, value * 2, *([value - 1] if value >= 2 else ()))
    elif isinstance(value, str):
        yield from (text for text in _texts(op_type, name) if text != value)
    elif isinstance(value, list | tuple) and value:
        yield value[::-1]
        if isinstance(value[0], int | float):
            yield from ([value[0] + 1, *value[1:]], [*value[:-1], value[-1] + 1])


def _left_out(sample: Sample) -> Iterator[tuple[str, Sequence[Any]]]:
    """The attributes that a node does not have, with values that are not their defaults."""
    if not onnx.defs.has(sample.op_type, sample.version, sample.domain):
        known = () if sample.domain != "com.microsoft" else OF_COM_MICROSOFT.items()
        yield from ((name, (value,)) for name, value in known if name not in sample.attributes)
        return
    schema = onnx.defs.get_schema(sample.op_type, sample.version, sample.domain)
    for name, attribute in schema.attributes.items():
        if name not in sample.attributes and name not in NOT_RUN:
            yield name, _unusual(sample.op_type, attribute)


def _unusual(op_type: str, attribute: onnx.defs.OpSchema.Attribute) -> Sequence[Any]:
    kinds, default = onnx.defs.OpSchema.AttrType, attribute.default_value
    if attribute.type == kinds.INT:
        return (1 - default.i,) if default.i in (0, 1) else (default.i + 1,)
    if attribute.type == kinds.FLOAT:
        return (2 * default.f + 0.25,)
    return _texts(op_type, attribute.name) if attribute.type == kinds.STRING else ()


def _texts(op_type: str, name: str) -> Sequence[str]:
    return MODES.get(op_type, ()) if name == "mode" else TEXTS.get(name, ())


def _other_operands(sample: Sample) -> Iterator[Sample]:
    given = list(sample.inputs)
    for place, array in enumerate(given):
        if array is None:
            continue
        optional = (None,) if _may_be_left_out(sample, place) else ()
        for other in (*optional, *(_arrays(array) if place in sample.constants else ())):
            yield replace(sample, inputs=[*given[:place], other, *given[place + 1 :]])


def _may_be_left_out(sample: Sample, place: int) -> bool:
    if not onnx.defs.has(sample.op_type, sample.version, sample.domain):
        return False
    operands = onnx.defs.get_schema(sample.op_type, sample.version, sample.domain).inputs
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return place < len(operands) and operands[place].option == optional


def exchanged(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """A model of one node with two of its operands, or of its results, in each other's place."""
    node = model.graph.node[0]
    for field, names in (("input", list(node.input)), ("output", list(node.output))):
        for one, other in combinations(range(len(names)), 2):
            if names[one] and names[other]:
                found = onnx.ModelProto()
                found.CopyFrom(model)
                places = getattr(found.graph.node[0], field)
                places[one], places[other] = names[other], names[one]
                yield found


def _arrays(given: Array) -> Iterator[Array]:
    if given.dtype.kind not in "fiu" or not given.size:
        return
    for axis in range(given.ndim):
        yield np.ascontiguousarray(np.flip(given, axis))
    flat = given.reshape(-1).copy()
    flat[-1] += 1
    yield flat.reshape(given.shape)


def defaults_of(sample: Sample) -> list[onnx.AttributeProto]:
    """The attributes that a node leaves out, as they are then."""
    if not onnx.defs.has(sample.op_type, sample.version, sample.domain):
        return []
    schema = onnx.defs.get_schema(sample.op_type, sample.version, sample.domain)
    left_out = [one for name, one in schema.attributes.items() if name not in sample.attributes]
    return [one.default_value for one in left_out if one.default_value.type]
