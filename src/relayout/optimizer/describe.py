"""Makes records for reports from models and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import onnx_ir as ir

from relayout.assign.apply import LEAVE_BYTES, STATE_AS_EINSUM
from relayout.assign.explain import explanations
from relayout.graph.io.model import LoadedModel
from relayout.graph.read import Dim, Shape, constant_of, is_default, perm_of, shape_of
from relayout.graph.region import KERNEL_DOMAIN, regions_of
from relayout.graph.source_line import source_line
from relayout.infer.colours import infer_colours, views_of
from relayout.infer.looks import Direction, Look
from relayout.layout.blocks import is_invented, size_of, sizes_of
from relayout.ops.facts import InnerCopies
from relayout.ops.measure import (
    NOMINAL_LENGTH,
    Measure,
    bytes_inside,
    bytes_of_move,
    copying_nodes,
    measure,
    moving_transposes,
)
from relayout.ops.registry import facts_of
from relayout.report.explanation import Explanation
from relayout.report.layouts import ConflictRecord, LayoutsRecord, TensorRecord
from relayout.report.records import Assumed, Figures, ModelRecord, PortRecord, TransposeRecord
from relayout.targets.target import NHWC, ONNX, Target

EXPLAIN_SECONDS = 2.0
"""How long `inspect` looks for a better choice of layouts, per graph."""

REMEDY = "--fix-defaults makes constants of inputs with defaults"


def model_record(loaded: LoadedModel, dims: Mapping[str, int]) -> ModelRecord:
    """What is reported about a model as it was given."""
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
        transposes=transpose_records(model, dims, EXPLAIN_SECONDS, _written_for(model)),
        assumed=assumed(loaded, dims),
        notices=(*loaded.notices, *softmax_note(model)),
    )


def layouts_record(
    loaded: LoadedModel, look: Look = Look.BEFORE, walk: Direction = Direction.FORWARDS
) -> LayoutsRecord:
    """The layout of every tensor of a model as it was given."""
    views = list(views_of(loaded.ir))
    found = infer_colours(views, look, walk)
    touched = (value for view in views for value in (*view.node.inputs, *view.node.outputs))
    values = [value for value in dict.fromkeys(touched) if value is not None and value.name]
    return LayoutsRecord(
        path="" if loaded.path is None else str(loaded.path),
        tensors=tuple(
            TensorRecord(
                name=value.name or "",
                shape=shape_text(shape_of(value), known_length),
                layout=str(found.colours[value]),
                layout_class=found.colours[value].layout_class.value,
                told=found.origins[value].value,
                constant=constant_of(value) is not None,
            )
            for value in values
        ),
        conflicts=tuple(
            ConflictRecord(value.name or "", str(found.colours[value]), str(wanted), readers)
            for (value, wanted), readers in found.conversions.items()
        ),
    )


def _written_for(model: ir.Model) -> Target:
    """A model with kernels that run channels last is for a runtime that has them."""
    nodes = (node for region in regions_of(model) for node in region.graph)
    return NHWC if any(node.domain == KERNEL_DOMAIN for node in nodes) else ONNX


def figures(measured: Measure, *, timed: bool = False) -> Figures:
    """What is reported of a model; its predicted time where that was made least."""
    nanoseconds = measured.nanoseconds if timed else 0
    return Figures(measured.transposes, measured.bytes_moved, measured.nodes, nanoseconds)


def transpose_records(
    model: ir.Model,
    dims: Mapping[str, int],
    budget_seconds: float | None = None,
    target: Target = ONNX,
) -> tuple[TransposeRecord, ...]:
    """Every Transpose that moves data; with a budget avoidable ones are marked."""
    return explained_records(explanations(model, dims, budget_seconds, target), dims)


def explained_records(
    explained: Mapping[ir.Node, Explanation], dims: Mapping[str, int]
) -> tuple[TransposeRecord, ...]:
    return tuple(_transpose_record(node, why, dims) for node, why in explained.items())


def assumed(loaded: LoadedModel, dims: Mapping[str, int]) -> Assumed:
    """The lengths that the size of some Transpose depends on and that are not given."""
    if loaded.frozen is not None:
        return Assumed()
    moved = [node.outputs[0] for _, node in moving_transposes(loaded.ir)]
    return assumed_for(loaded, moved, dims)


def assumed_for(
    loaded: LoadedModel, values: Iterable[ir.Value], dims: Mapping[str, int]
) -> Assumed:
    """The lengths that the sizes of these values depend on and that are not given."""
    shapes = [shape_of(value) or () for value in values]
    unknown = dict.fromkeys(
        name if kind == "named" else None
        for shape in shapes
        for size in sizes_of(shape, "axis")
        for kind, name in size.symbols
    )
    declared = {length for value in loaded.ir.graph.inputs for length in shape_of(value) or ()}
    given = [name for name in unknown if name is not None and name in dims]
    names = tuple(name for name in unknown if name and name in declared and name not in dims)
    return Assumed(names, len(unknown) - len(given) - len(names), NOMINAL_LENGTH)


def run_notes(
    model: ir.Model,
    left: bool,
    applied: Counter[str],
    reasons: Mapping[str, Sequence[str]],
    target: Target,
) -> tuple[str, ...]:
    """What to know about a result: how products are stated, and what keeps Transposes."""
    defaults = _defaults_note(model) if left else ()
    remedy = "--no-einsum" if target.einsum else "--minimize bytes"
    in_floats = _floats_note(applied[LEAVE_BYTES], remedy)
    products = *_einsum_notes(model, applied[STATE_AS_EINSUM]), *in_floats
    return (*products, *softmax_note(model), *defaults, *attention_notes(reasons))


def attention_notes(reasons: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """One line per reason why attentions stay spelt out."""
    return tuple(
        f"the attention at {names[0]!r} stays spelt out: {reason}"
        if len(names) == 1
        else f"{len(names)} attentions stay spelt out, {names[0]!r} first: {reason}"
        for reason, names in reasons.items()
    )


def _defaults_note(model: ir.Model) -> tuple[str, ...]:
    """For Transposes of inputs with defaults, which would be folded if these were constants."""
    moved = sum(is_default(node.inputs[0]) for _, node in moving_transposes(model))
    which = "an input with a default is" if moved == 1 else f"{moved} inputs with defaults are"
    note = f"{which} transposed at every run, since a caller may replace it; {REMEDY}"
    return (note,) if moved else ()


def held_note(model: ir.Model, target: Target) -> tuple[str, ...]:
    """For operators that would get a kernel if their caller could not replace their parameters."""
    held = target.held_by_defaults(model)
    which = "an operator stays" if held == 1 else f"{held} operators stay"
    note = f"{which} channels first, since a caller may replace parameters; {REMEDY}"
    return (note,) if held else ()


def _einsum_notes(model: ir.Model, stated: int) -> tuple[str, ...]:
    """For products that were stated as Einsum."""
    if not stated:
        return ()
    what = "1 product is" if stated == 1 else f"{stated} products are"
    note = f"{what} stated as Einsum; the copies runtimes make in there count as bytes moved"
    if all(isinstance(n, int) for value in model.graph.inputs for n in shape_of(value) or (None,)):
        return (note,)
    return (note, "no length may be 0: ONNX Runtime ends its process on an Einsum without elements")


def _floats_note(stated: int, remedy: str) -> tuple[str, ...]:
    """For quantised products that runtimes have no integer kernel for any more."""
    what, them = f"{stated} products between quantisers are", "them"
    if stated == 1:
        what, them = "1 product between quantisers is", "it"
    how = f"stated such that runtimes compute {them} in floats"
    note = f"{what} {how}; {remedy} keeps {them} in bytes"
    return (note,) if stated else ()


def size_note(added: int) -> tuple[str, ...]:
    """For constants that are stored in more than one order."""
    note = f"constants take {added} bytes more, since some are stored in two orders"
    return (f"{note}; --keep-size forbids that",) if added > 0 else ()


def softmax_note(model: ir.Model) -> tuple[str, ...]:
    """For Softmaxes that copy their operand, which no Transpose shows."""
    found = sum(
        facts_of(node).copies is InnerCopies.SOFTMAX and bytes_inside(region.view(node), {}) > 0
        for region, node in copying_nodes(model)
    )
    what = "1 Softmax is" if found == 1 else f"{found} Softmaxes are"
    note = f"{what} not along the last axis; the copies runtimes make for it count as bytes moved"
    return (note,) if found else ()


def shape_text(shape: Shape | None, text: Callable[[Dim], str]) -> str:
    return "?" if shape is None else "[" + ",".join(map(text, shape)) + "]"


def _as_declared(length: Dim) -> str:
    return "?" if length is None else str(length)


def known_length(length: Dim) -> str:
    """A number, a product of names of the model, a question mark for what has no name."""
    if not isinstance(length, str):
        return _as_declared(length)
    size = size_of(length)
    names = ["?" if is_invented(name) else name for _, name in size.symbols]
    return "·".join([str(size.number), *names] if size.number != 1 else names)


def _transpose_record(node: ir.Node, why: Explanation, dims: Mapping[str, int]) -> TransposeRecord:
    source, result, order = node.inputs[0], node.outputs[0], perm_of(node)
    return TransposeRecord(
        name=node.name or result.name or "",
        tensor="" if source is None else source.name or "",
        shape=shape_text(shape_of(source), known_length),
        perm=None if order is None else order.axes,
        bytes_moved=bytes_of_move(node, dims),
        line=source_line(node),
        why=why,
    )


def _ports(values: Iterable[ir.Value]) -> tuple[PortRecord, ...]:
    return tuple(
        PortRecord(value.name or "", _type_text(value), shape_text(shape_of(value), _as_declared))
        for value in values
    )


def _type_text(value: ir.Value) -> str:
    if isinstance(value.type, ir.TensorType):
        return value.type.dtype.name.lower()
    return "?" if value.type is None else type(value.type).__name__.removesuffix("Type").lower()


def _op_name(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type
