"""The law of the operator rules, as a function of a sample and an order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import helper
from onnx.reference import ReferenceEvaluator

from relayout.graph.editing.editor import Editor
from relayout.graph.names import Names
from relayout.graph.read import NodeView
from relayout.graph.region import Region, regions_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle, StoredOrder
from relayout.layout.transport import Refusal, Transport
from relayout.ops.registry import shuffles_of
from relayout.ops.rule import ask, ask_joint
from relayout.targets.target import ONNX, Target
from tests.samples.sample import Array, Sample

IR_VERSION = 10
RANK_FIVE = (
    *((0, 2, 3, 4, 1), (0, 4, 1, 2, 3), (4, 3, 2, 1, 0)),
    *((0, 1, 3, 4, 2), (1, 0, 2, 4, 3), (2, 0, 1, 3, 4)),
)


def orders(rank: int) -> Iterator[Permutation]:
    """Every order up to rank 4, and a choice of the longer ones."""
    if rank <= 4:
        yield from (Permutation(axes) for axes in permutations(range(rank)))
        return
    for axes in RANK_FIVE:
        yield Permutation((*axes, *range(5, rank)))


def model_of(sample: Sample) -> onnx.ModelProto:
    """A model of one node, with what is known of its results."""
    model = bare_model_of(sample)
    if sample.domain == "com.microsoft":
        _declare_results(model, sample)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def bare_model_of(sample: Sample) -> onnx.ModelProto:
    """A model of one node that no inference has seen, which may not take what is no valid node."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(sample.inputs)]
    results = ["" if j in sample.unused else f"y{j}" for j in range(sample.outputs)]
    node = helper.make_node(
        sample.op_type, names, results, domain=sample.domain, name="node", **sample.attributes
    )
    given = [(i, names[i], x) for i, x in enumerate(sample.inputs) if x is not None]
    inputs = [_declare(name, x) for i, name, x in given if i not in sample.constants]
    constants = [
        onnx.numpy_helper.from_array(x, name) for i, name, x in given if i in sample.constants
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in results if name]
    graph = helper.make_graph([node], "sample", inputs, outputs, constants)
    opsets = [helper.make_opsetid(sample.domain, sample.version)]
    if sample.domain:
        opsets.append(helper.make_opsetid("", 21))
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _declare_results(model: onnx.ModelProto, sample: Sample) -> None:
    """Declare what onnx cannot infer: the shapes of the results of a foreign operator."""
    results = run(model, feeds_of(sample), sample.runtime)
    for output, y in zip(model.graph.output, results, strict=True):
        output.CopyFrom(_declare(output.name, y))


def view_of(sample: Sample) -> NodeView:
    return view_in(model_of(sample))


def view_in(model: onnx.ModelProto) -> NodeView:
    """The one node of a model."""
    region, node = _only_node(ir.from_proto(model))
    return region.view(node)


def check(sample: Sample, order: Permutation, target: Target = ONNX) -> Transport | Refusal:
    """Assert the law for the answer of a rule to an order of the lead operand."""
    view = view_of(sample)
    rule = target.rule_of(view)
    answer = ask(rule, view, order)
    if isinstance(answer, Refusal):
        return answer
    assert order.is_identity or answer.inputs[rule.lead(view)] == order, (
        "the lead operand is in the order asked for"
    )
    hold(sample, answer)
    return answer


def check_joint(
    sample: Sample, operand: int, order: Permutation, target: Target = ONNX
) -> Sequence[Transport]:
    """Assert the law for everything that an order of an operand makes worth trying."""
    view = view_of(sample)
    answers = ask_joint(target.rule_of(view), view, operand, order)
    for answer in answers:
        hold(sample, answer)
    return answers


def check_shuffle(sample: Sample, port: int, order: StoredOrder) -> Sequence[Transport]:
    """Assert the law for every restatement in which a port has an order of its entries."""
    view = view_of(sample)
    answers = shuffles_of(view).rule(view, {port: order})
    for answer in answers:
        hold(sample, answer)
    return answers


def hold(sample: Sample, answer: Transport) -> None:
    """Assert that the restated node on permuted data gives the permuted result of the given one."""
    feeds = _permuted(sample, answer)
    before = run(model_of(sample), feeds_of(sample), sample.runtime)
    after = run(restated(sample, answer), feeds, sample.runtime)
    wanted = _permuted_results(sample, answer, before)
    for name, expected, got in zip(_result_names(sample), wanted, after, strict=True):
        orders_asked = "x".join(map(str, answer.inputs))
        compare(f"{sample.id} {orders_asked} {name}", expected, got, sample.tolerance)


def restated(sample: Sample, answer: Transport) -> onnx.ModelProto:
    """The model of the restated node, whose inputs are stored in the orders of the answer."""
    model = ir.from_proto(model_of(sample))
    region, node = _only_node(model)
    assert len(answer.inputs) == len(node.inputs), "one order per operand"
    assert len(answer.outputs) == len(node.outputs), "one order per result"
    _restate(region, node, answer, Names.of(model))
    return ir.to_proto(model)


def compare(what: str, expected: Any, got: Any, tolerance: float) -> None:
    expected, got = np.asarray(expected), np.asarray(got)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, not {expected.shape}"
    assert got.dtype == expected.dtype, f"{what}: type {got.dtype}, not {expected.dtype}"
    if tolerance == 0 or expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, expected, what)
    else:
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
        np.testing.assert_allclose(
            got, expected, rtol=tolerance, atol=tolerance * scale, err_msg=what
        )


def run(model: onnx.ModelProto, feeds: dict[str, Array], runtime: str) -> list[Any]:
    if runtime == "reference":
        return list(ReferenceEvaluator(model).run(None, feeds))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


def _only_node(model: ir.Model) -> tuple[Region, ir.Node]:
    region = next(regions_of(model))
    return region, next(node for node in region.graph if node.name == "node")


def _restate(region: Region, node: ir.Node, answer: Transport, names: Names) -> None:
    """Replace the node; graph inputs are taken as stored in the new orders already."""
    editor = Editor(region, names)
    operands: list[ir.Value | None] = []
    for value, order in zip(node.inputs, answer.inputs, strict=True):
        if value is None or order is None:
            operands.append(value)
        elif value.is_initializer():
            operands.append(_constant(editor, value, order, node))
        else:
            value.shape = ir.Shape(order.reorder(tuple(value.shape))) if value.shape else None
            operands.append(value)
    results = editor.restated(node, answer, operands)
    for index, result in enumerate(results):
        for place, output in enumerate(region.graph.outputs):
            if output is node.outputs[index]:
                region.graph.outputs[place] = result
    region.graph.remove(node, safe=True)
    for output in region.graph.outputs:
        output.shape = None


def _constant(editor: Editor, value: ir.Value, order: StoredOrder, node: ir.Node) -> ir.Value:
    if isinstance(order, Shuffle):
        return editor.gathered(value, order.places.tolist(), before=node, axis=order.axis)
    return editor.transposed(value, order, before=node)


def feeds_of(sample: Sample) -> dict[str, Array]:
    return {
        f"x{i}": x
        for i, x in enumerate(sample.inputs)
        if x is not None and i not in sample.constants
    }


def _permuted(sample: Sample, answer: Transport) -> dict[str, Array]:
    feeds = {}
    for index, x in enumerate(sample.inputs):
        order = answer.inputs[index]
        if x is None or index in sample.constants:
            continue
        feeds[f"x{index}"] = x if order is None else np.ascontiguousarray(stored(x, order))
    return feeds


def stored(x: Array, order: StoredOrder) -> Array:
    """What a tensor is in an order."""
    if isinstance(order, Shuffle):
        return x.take(order.places, order.axis)
    return x.transpose(order.axes)


def _result_names(sample: Sample) -> list[str]:
    return [f"y{j}" for j in range(sample.outputs) if j not in sample.unused]


def _permuted_results(sample: Sample, answer: Transport, results: Sequence[Any]) -> list[Any]:
    orders_of_results = [order for j, order in enumerate(answer.outputs) if j not in sample.unused]
    return [
        y if order is None else stored(np.asarray(y), order)
        for y, order in zip(results, orders_of_results, strict=True)
    ]


def _declare(name: str, x: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
