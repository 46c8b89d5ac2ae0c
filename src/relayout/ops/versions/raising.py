"""A model brought to a newer opset by the tables of what changed."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from relayout.graph.io.bind import soften
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.opset import Restate, raise_opset
from relayout.graph.messages.skeleton import skeleton_of
from relayout.graph.messages.walk import Body, nested_bodies
from relayout.graph.region import regions_of
from relayout.graph.shapes.infer import infer
from relayout.ops.versions.old_node import Surroundings, Values
from relayout.ops.versions.table import NEWEST, restated


def raised(loaded: LoadedModel, version: int) -> onnx.ModelProto:
    """The message of a model in a newer opset; the given one where it has this version already."""
    known = dict(_values(_with_shapes(loaded)))

    def restate_in(root: Body) -> Restate:
        # Names mean something else inside functions.
        values: Values = known if isinstance(root, onnx.GraphProto) else {}
        taken, read = _names(root), _read(root)

        def fresh(hint: str) -> str:
            name, count = hint, 0
            while name in taken:
                count += 1
                name = f"{hint}_{count}"
            taken.add(name)
            return name

        around = Surroundings(version, values, read, fresh)
        return lambda node, step: restated(node, step, around)

    return raise_opset(loaded.source, version, NEWEST, restate_in)


def _with_shapes(loaded: LoadedModel) -> ir.Model:
    """A model of an opset that is too old to be edited has its shapes inferred all the same."""
    if loaded.editable is not None:
        return loaded.editable
    inferred, _ = infer(skeleton_of(loaded.source), loaded.source, 0)
    soften(inferred)
    return ir.from_proto(inferred)


def _values(model: ir.Model) -> Iterator[tuple[str, ir.Value]]:
    for region in regions_of(model):
        if not region.in_function:
            graph = region.graph
            results = (value for node in graph for value in node.outputs)
            for value in (*graph.inputs, *graph.initializers.values(), *results):
                yield str(value.name), value


def _read(root: Body) -> set[str]:
    bodies = list(nested_bodies(root))
    names = {name for body in bodies for node in body.node for name in node.input}
    for body in bodies:
        given = body.output
        names |= {name if isinstance(name, str) else name.name for name in given}
    return names - {""}


def _names(root: Body) -> set[str]:
    names = _read(root)
    for body in nested_bodies(root):
        names |= {name for node in body.node for name in node.output}
        names |= {name if isinstance(name, str) else name.name for name in body.input}
        if isinstance(body, onnx.GraphProto):
            names |= {tensor.name for tensor in body.initializer}
            names |= {sparse.values.name for sparse in body.sparse_initializer}
    return names
