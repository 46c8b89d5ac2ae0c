"""Turns models and runs into records for reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import onnx_ir as ir

from relayout.graph.measure import Measure, bytes_of, measure, moving_transposes
from relayout.graph.model import LoadedModel
from relayout.graph.read import Shape, perm_of, shape_of
from relayout.graph.region import Region, regions_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal
from relayout.ops.registry import rule_of, transport
from relayout.report.records import Figures, ModelRecord, PortRecord, TransposeRecord


def model_record(loaded: LoadedModel, dims: Mapping[str, int]) -> ModelRecord:
    """What there is to tell about a model as it was given."""
    model, source = loaded.ir, loaded.source
    operators = Counter(_op_name(node) for region in regions_of(model) for node in region.graph)
    return ModelRecord(
        path="" if loaded.path is None else str(loaded.path),
        producer=" ".join(filter(None, (source.producer_name, source.producer_version))),
        ir_version=source.ir_version,
        opsets={opset.domain: opset.version for opset in source.opset_import},
        inputs=_ports(model.graph.inputs),
        outputs=_ports(model.graph.outputs),
        figures=figures(measure(model, dims)),
        operators=dict(sorted(operators.items())),
        transposes=transpose_records(model, dims),
        notices=tuple(loaded.notices),
    )


def figures(measured: Measure) -> Figures:
    return Figures(measured.transposes, measured.bytes_moved, measured.nodes)


def transpose_records(model: ir.Model, dims: Mapping[str, int]) -> tuple[TransposeRecord, ...]:
    return tuple(_transpose_record(region, node, dims) for region, node in moving_transposes(model))


def shape_text(shape: Shape | None) -> str:
    if shape is None:
        return "?"
    return "[" + ",".join("?" if length is None else str(length) for length in shape) + "]"


def _transpose_record(region: Region, node: ir.Node, dims: Mapping[str, int]) -> TransposeRecord:
    source, result, order = node.inputs[0], node.outputs[0], perm_of(node)
    producer = None if source is None else source.producer()
    readers = list(dict.fromkeys(use.node for use in result.uses()))
    reasons = dict.fromkeys(_reasons(region, result, readers, order))
    names = [_op_name(reader) for reader in readers]
    return TransposeRecord(
        name=node.name or result.name or "",
        perm=None if order is None else order.axes,
        shape=shape_text(shape_of(source)),
        bytes_moved=2 * bytes_of(result, dims),
        source="graph input" if producer is None else _op_name(producer),
        readers=(*names, *(["graph output"] if result.is_graph_output() else [])),
        reasons=tuple(reasons),
    )


def _reasons(
    region: Region, value: ir.Value, readers: Iterable[ir.Node], order: Permutation | None
) -> Iterable[str]:
    """What each reader says to the value as it was before the Transpose."""
    if order is None:
        yield "its perm does not fit the rank, or the rank is unknown"
        return
    if value.is_graph_output():
        yield "the model's output is declared in this order"
    for reader in readers:
        view = region.view(reader)
        lead = rule_of(view).lead(view)
        if lead >= view.arity or reader.inputs[lead] is not value:
            continue
        answer = transport(view, order.inverse())
        if isinstance(answer, Refusal):
            yield answer.reason


def _ports(values: Iterable[ir.Value]) -> tuple[PortRecord, ...]:
    return tuple(
        PortRecord(value.name or "", _type_text(value), shape_text(shape_of(value)))
        for value in values
    )


def _type_text(value: ir.Value) -> str:
    if isinstance(value.type, ir.TensorType):
        return value.type.dtype.name.lower()
    return "?" if value.type is None else type(value.type).__name__.removesuffix("Type").lower()


def _op_name(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type
