"""Before and after in ONNX text, with every check that a rewrite must pass."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from relayout.assign.choose import ChooseLayouts
from relayout.assign.terms import Terms
from relayout.graph.invariants import Signature
from relayout.graph.read import constant_of
from relayout.ops.measure import Objective, measure
from relayout.optimizer.pipeline import Checking, layouts
from relayout.targets.target import ONNX, Target

HEADER = '<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n'


def parse(text: str, opset: int = 21) -> onnx.ModelProto:
    """A model from the text of a graph; the header is added."""
    return onnx.parser.parse_model(
        text if text.lstrip().startswith("<") else HEADER.format(opset=opset) + text
    )


def to_ir(model: onnx.ModelProto) -> ir.Model:
    return ir.from_proto(onnx.shape_inference.infer_shapes(model, data_prop=True))


Choose: TypeAlias = Callable[[ir.Model], Counter[str]]


def as_given(_model: ir.Model) -> Counter[str]:
    """A choice of layouts that finds nothing better, so that rewrites are seen alone."""
    return Counter()


def rewritten(
    model: onnx.ModelProto, target: Target = ONNX, *, choose: Choose | None = None
) -> onnx.ModelProto:
    """The model after all that users run on it, checked from every side."""
    before = to_ir(model)
    first = measure(before)
    _run(before, target, choose)
    last = measure(before)
    assert last.transposes <= first.transposes
    assert last.bytes_moved <= first.bytes_moved
    result = ir.to_proto(before)
    onnx.checker.check_model(result, full_check=not target.fused_matmul)
    again = to_ir(result)
    _run(again, target, choose)
    assert canonical(ir.to_proto(again)) == canonical(result), "a second run changes something"
    return result


def _run(model: ir.Model, target: Target, choose: Choose | None) -> None:
    choice = choose or ChooseLayouts(Terms(Objective.BYTES, target))
    layouts(target, choice).run(model, [Checking(Signature.of(model))])


def assert_rewrites(
    before: str,
    after: str,
    target: Target = ONNX,
    opset: int = 21,
    exact: bool = True,
    *,
    choose: Choose | None = None,
) -> None:
    """`before` becomes `after`, and both compute the same."""
    given = parse(before, opset)
    result = rewritten(given, target, choose=choose)
    assert canonical(result) == canonical(parse(after, opset)), onnx.printer.to_text(result)
    if not any(node.domain for node in (*given.graph.node, *result.graph.node)):
        assert_same_numbers(given, result, exact)


def assert_kept(
    text: str, target: Target = ONNX, opset: int = 21, *, choose: Choose | None = None
) -> None:
    """A graph stays as it is: the negative twin of a rewrite."""
    assert_rewrites(text, text, target, opset, choose=choose)


def assert_same_numbers(before: onnx.ModelProto, after: onnx.ModelProto, exact: bool) -> None:
    feeds = {value.name: data_for(value) for value in before.graph.input}
    expected = ReferenceEvaluator(before).run(None, feeds)
    got = ReferenceEvaluator(after).run(None, feeds)
    for one, other in zip(expected, got, strict=True):
        if exact:
            np.testing.assert_array_equal(other, one)
        else:
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


def data_for(value: onnx.ValueInfoProto) -> Any:
    tensor = value.type.tensor_type
    sizes: dict[str, int] = {}
    shape = [
        dim.dim_value
        if dim.HasField("dim_value")
        else sizes.setdefault(dim.dim_param, 2 + len(sizes))
        for dim in tensor.shape.dim
    ]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return np.random.default_rng(len(value.name)).integers(0, 9, shape).astype(dtype)


def transposes(model: onnx.ModelProto) -> int:
    return measure(to_ir(model)).transposes


def canonical(model: onnx.ModelProto) -> str:
    """A text that is the same for two models that differ only in inner names."""
    return "\n".join(_graph_lines(to_ir(model).graph, {}))


def _graph_lines(graph: ir.Graph, outer: dict[ir.Value, str]) -> list[str]:
    names = dict(outer)
    names.update({value: str(value.name) for value in graph.inputs})
    lines = []
    for node in graph:
        if constant_of(node.outputs[0] if node.outputs else None) is not None:
            continue
        operands = [_operand(value, names) for value in node.inputs]
        for value in node.outputs:
            names[value] = f"v{len(names)}"
        attributes = [
            f"{name}={_attribute(attribute, names)}"
            for name, attribute in sorted(node.attributes.items())
        ]
        results = [names[value] for value in node.outputs]
        lines.append(f"{results} = {node.domain}.{node.op_type}{attributes}({operands})")
    outputs = [f"{value.name}:{_operand(value, names)}" for value in graph.outputs]
    return [*lines, f"return {outputs}"]


def _operand(value: ir.Value | None, names: dict[ir.Value, str]) -> str:
    if value is None:
        return ""
    tensor = constant_of(value)
    if tensor is None:
        return names[value]
    array = tensor.numpy()
    content = array.tolist() if array.size < 64 else hashlib.sha1(array.tobytes()).hexdigest()
    return f"{tensor.dtype}{list(array.shape)}{content}"


def _attribute(attribute: ir.Attr, names: dict[ir.Value, str]) -> str:
    if attribute.type == ir.AttributeType.GRAPH:
        return "{" + "; ".join(_graph_lines(attribute.as_graph(), names)) + "}"
    if attribute.type == ir.AttributeType.TENSOR:
        return str(numpy_helper.to_array(ir.to_proto(attribute.as_tensor())).tolist())
    return str(attribute.value)
