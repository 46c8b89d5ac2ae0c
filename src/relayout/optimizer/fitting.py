"""What of a model as it was given does not fit a device, where, why, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike

import onnx_ir as ir

from relayout.graph.io.sources import ModelSource
from relayout.graph.read import constant_of, version_of
from relayout.graph.region import regions_of
from relayout.infer.colours import infer_colours, views_of
from relayout.ops.measure import bytes_of
from relayout.optimizer.prepare import opened, prepare
from relayout.report.fit import FitRecord, MisfitRecord
from relayout.targets.profiles.form import form_of
from relayout.targets.profiles.profile import Profile, profile_of
from relayout.targets.target import ONNX

ORDERS = frozenset({"NCHW", "NHWC"})


def check_profile(
    source: ModelSource,
    profile: str | PathLike[str] | Profile,
    *,
    dims: Mapping[str, int] | None = None,
) -> FitRecord:
    """What of a model a device does not take as it is, by a profile's name, file or value."""
    asked, lengths = profile_of(profile), dims or {}
    loaded = prepare(opened(source), ONNX, lengths).informed
    return FitRecord(
        path="" if loaded.path is None else str(loaded.path),
        profile=asked.name,
        misfits=(*_too_new(loaded.ir, asked), *_nodes(loaded.ir, asked, lengths)),
        copied=tuple(_in_other_orders(loaded.ir, asked, lengths)),
    )


def _too_new(model: ir.Model, profile: Profile) -> Iterator[MisfitRecord]:
    ceiling, version = profile.opset, version_of(model.graph.opset_imports, "")
    if ceiling is not None and version > ceiling.most:
        why = f"opset {version}, those up to {ceiling.most} are read"
        yield MisfitRecord("", "model", why, ceiling.source, 0)


def _in_other_orders(
    model: ir.Model, profile: Profile, dims: Mapping[str, int]
) -> Iterator[MisfitRecord]:
    """Pictures among inputs and outputs for which a Transpose is needed."""
    preferred = profile.interface
    if preferred is None:
        return
    colours = infer_colours(list(views_of(model))).colours
    ports = [
        *(("input", v) for v in model.graph.inputs),
        *(("output", v) for v in model.graph.outputs),
    ]
    for kind, value in ports:
        layout = str(colours[value]) if value in colours else ""
        if layout not in ORDERS or layout == preferred.order:
            continue
        why = f"it is {layout}, {preferred.order} is read without a copy"
        copied = 2 * bytes_of(value, dims)
        yield MisfitRecord(value.name or "", kind, why, preferred.source, copied)


def _nodes(model: ir.Model, profile: Profile, dims: Mapping[str, int]) -> Iterator[MisfitRecord]:
    for region in regions_of(model):
        for node in region.graph:
            touched = [value for value in (*node.inputs, *node.outputs) if _is_computed(value)]
            if not any(value in touched for value in node.inputs):
                continue
            form = form_of(region.view(node))
            copied = sum(bytes_of(value, dims) for value in touched if value is not None)
            name = node.name or node.outputs[0].name or ""
            for limit, reason in profile.broken(form):
                yield MisfitRecord(name, form.op_type, reason, limit.source, copied)


def _is_computed(value: ir.Value | None) -> bool:
    return value is not None and bool(value.name) and constant_of(value) is None
