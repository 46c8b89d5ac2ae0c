"""Which models may be edited, and which are only copied through."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from relayout.errors import BadModelError, quoted
from relayout.graph.messages.scoping import free_names
from relayout.graph.messages.walk import Body, bodies_of, described, nested_bodies

OLDEST_OPSET = 7
OLDEST_IR_VERSION = 3
AXES_FROM_THE_BACK_SINCE = 11


def check_imports(model: onnx.ModelProto) -> None:
    """Refuse two imports of one domain that disagree, and standard operators of no version."""
    holders: list[tuple[onnx.ModelProto | onnx.FunctionProto, Body]] = [(model, model.graph)]
    holders += [(function, function) for function in model.functions]
    for holder, body in holders:
        versions: dict[str, int] = {}
        for entry in holder.opset_import:
            domain = standard_name(entry.domain)
            if versions.setdefault(domain, entry.version) != entry.version:
                raise BadModelError(
                    f"operator set {quoted(domain)} is imported in the versions"
                    f" {versions[domain]} and {entry.version}"
                )
        if "" not in versions and _uses_standard_operators(body):
            raise BadModelError("it uses standard operators but imports no version of them")


def _uses_standard_operators(body: Body) -> bool:
    return any(
        not standard_name(node.domain) for inner in nested_bodies(body) for node in inner.node
    )


def standard_name(domain: str) -> str:
    """A domain by one name; the standard domain has two."""
    return "" if domain == "ai.onnx" else domain


def frozen_reason(model: onnx.ModelProto) -> str | None:
    """Why a model may only be copied through; None if it may be edited."""
    return (
        _strange_version(model)
        or next(_strange_names(model), None)
        or next(_training_ties(model), None)
        or next(_undefined_axes(model), None)
    )


def _strange_version(model: onnx.ModelProto) -> str | None:
    newest_ir = int(onnx.IR_VERSION)
    if not OLDEST_IR_VERSION <= model.ir_version <= newest_ir:
        return f"its IR version {model.ir_version} is not in {OLDEST_IR_VERSION} to {newest_ir}"
    newest = onnx.defs.onnx_opset_version()
    for holder in (model, *model.functions):
        for entry in holder.opset_import:
            known = standard_name(entry.domain) or OLDEST_OPSET <= entry.version <= newest
            if not known:
                return f"its opset version {entry.version} is not in {OLDEST_OPSET} to {newest}"
    return None


def _strange_names(model: onnx.ModelProto) -> Iterator[str]:
    """Protobuf gives text that is not UTF-8 as bytes; onnx-ir cannot write such a name."""
    for body in bodies_of(model):
        for name in [name for name in _names(body) if isinstance(name, bytes)]:
            yield f"the name {quoted(name)} is not UTF-8"


def _undefined_axes(model: onnx.ModelProto) -> Iterator[str]:
    """Axes that count from the back came with opset 11; onnx infers nonsense of older ones."""
    for holder, root in ((model, model.graph), *((each, each) for each in model.functions)):
        versions = {standard_name(entry.domain): entry.version for entry in holder.opset_import}
        if versions.get("", AXES_FROM_THE_BACK_SINCE) >= AXES_FROM_THE_BACK_SINCE:
            continue
        for body in nested_bodies(root):
            for node in body.node:
                if node.op_type in {"Squeeze", "Unsqueeze"} and min(_axes(node), default=0) < 0:
                    yield f"{described(node)} counts axes from the back, before opset 11"


def _axes(node: onnx.NodeProto) -> list[int]:
    return [axis for a in node.attribute if a.name == "axes" for axis in a.ints]


def _names(body: Body) -> list[object]:
    names: list[object] = [body.name]
    if isinstance(body, onnx.GraphProto):
        names += [value.name for value in (*body.input, *body.output, *body.value_info)]
        names += [tensor.name for tensor in body.initializer]
    else:
        names += [body.domain, *body.input, *body.output]
    for node in body.node:
        names += (node.op_type, node.name, node.domain, node.doc_string, *node.input, *node.output)
        names += [attribute.name for attribute in node.attribute]
    return names


def _training_ties(model: onnx.ModelProto) -> Iterator[str]:
    """Training graphs may name values inside the model, which an edit could take away."""
    if not model.training_info:
        return
    inner = {tensor.name for tensor in model.graph.initializer}
    inner |= {sparse.values.name for sparse in model.graph.sparse_initializer}
    inner |= {name for node in model.graph.node for name in node.output}
    for info in model.training_info:
        bindings = [*info.initialization_binding, *info.update_binding]
        names = [name for entry in bindings for name in (entry.key, entry.value)]
        names += free_names(info.initialization) + free_names(info.algorithm)
        for name in names:
            if name in inner:
                yield f"its training information refers to the inner value {quoted(name)}"
