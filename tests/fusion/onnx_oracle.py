"""TVM's own FuseOps on ONNX files, in the two languages of graphs that TVM has had.

Relax: each node is imported, legalised and annotated by TVM on its own, and the functions that come
out of it are called in the order of the file. Relay is not a part of TVM any more: its vertices are
stated here, as functions that do nothing to speak of and claim the kind that Relay gave to them.
A Relay edge from an operand that has the shape of a broadcast result is elementwise; so is a
function here of which one operand has that shape, which is the same for files in which no result
of a complex operator is broadcast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx
import tvm
from onnx import helper, numpy_helper
from tvm import relax, te
from tvm.relax.frontend.onnx import from_onnx
from tvm.script import relax as script

Groups: TypeAlias = set[frozenset[str]]
"""The nodes of each group, by name."""

Shape: TypeAlias = tuple[int, ...]

DUMMY = (4, 4)
POINTWISE = ("Abs", "Exp", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh")
BROADCASTING = ("Add", "Div", "Mul", "Sub")
REDUCING = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
RELAY_KINDS = {
    **dict.fromkeys(POINTWISE, 0),
    "Expand": 1,
    **dict.fromkeys(("Concat", "Reshape", "Slice", "Split", "Transpose"), 2),
    **dict.fromkeys(REDUCING, 3),
    **dict.fromkeys(("Conv", "MatMul", "MaxPool", "Softmax"), 4),
}
TUPLE_KIND = 7
PARAMETRISED = ("Expand", "Reshape", "Slice", *REDUCING)
"""All operands but the first are constants that only parametrise these."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a function, of which each result has a name."""

    node: str
    function: Any
    operands: tuple[Any, ...]
    """Names of values, or constants of TVM."""
    results: tuple[str, ...]
    types: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Field:
    """One result of a call that makes several."""

    call: str
    place: int
    name: str


_Step: TypeAlias = _Call | _Field


def groups_by_relax(model: onnx.ModelProto, max_depth: int) -> Groups:
    """What Relax makes of a file, its operators taken in the order of the file."""
    shapes = _shapes(model)
    constants = _constants(model)
    steps: list[_Step] = []
    for node in model.graph.node:
        steps.append(_imported(node, shapes, constants))
        steps += _fields(node) if len(node.output) > 1 else ()
    return _fused(model, steps, shapes.__getitem__, max_depth)


def groups_by_relay(model: onnx.ModelProto, max_depth: int) -> Groups:
    """What Relay made of a file, its operators taken in the order of a walk from the outputs."""
    found = _fused(model, list(_Walk(model).steps()), lambda _name: DUMMY, max_depth)
    nodes = {node.name for node in model.graph.node}
    return {group & nodes for group in found if group & nodes}


def _fields(node: onnx.NodeProto) -> Iterator[_Field]:
    return (_Field(node.name, place, name) for place, name in enumerate(node.output))


# FuseOps on calls of functions


def _fused(
    model: onnx.ModelProto, steps: Sequence[_Step], shape: Callable[[str], Shape], max_depth: int
) -> Groups:
    with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": max_depth}):
        module = relax.transform.FuseOps()(_module(model, steps, shape))
    found: Groups = set()
    for name, function in module.functions.items():
        if not isinstance(function, relax.Function):
            continue
        nodes = _called(module, function)
        is_main = name.name_hint == "main"
        found |= {frozenset([node]) for node in nodes} if is_main else {frozenset(nodes)}
    return found


def _module(model: onnx.ModelProto, steps: Sequence[_Step], shape: Callable[[str], Shape]) -> Any:
    constants = _constants(model)
    builder = relax.BlockBuilder()
    given = [each.name for each in model.graph.input]
    given += [name for name, array in constants.items() if array.shape]
    values: dict[str, Any] = {
        name: relax.Var(name, _tensor(shape(name) if name not in constants else DUMMY))
        for name in given
    }
    ends = {each.name for each in model.graph.output}
    with builder.function("main", list(values.values())):
        with builder.dataflow():
            for step in steps:
                _emit(builder, step, values, ends)
        results = [values[each.name] for each in model.graph.output]
        builder.emit_func_output(relax.Tuple(results) if len(results) > 1 else results[0])
    return builder.get()


def _emit(builder: Any, step: _Step, values: dict[str, Any], ends: set[str]) -> None:
    if isinstance(step, _Field):
        made, name = relax.TupleGetItem(values[step.call], step.place), step.name
    else:
        operands = [values[each] if isinstance(each, str) else each for each in step.operands]
        function = builder.add_func(step.function.with_attr("node", step.node), step.node)
        types = step.types[0] if len(step.types) == 1 else list(step.types)
        made = relax.call_tir(function, operands, out_ty=types)
        name = step.results[0] if len(step.results) == 1 else step.node
    values[name] = (builder.emit_output if name in ends else builder.emit)(made)


def _called(module: Any, function: Any) -> list[str]:
    found: list[str] = []

    def visit(expression: Any) -> None:
        if not isinstance(expression, relax.Call) or not isinstance(expression.op, tvm.ir.Op):
            return
        if expression.op.name == "relax.call_tir":
            found.append(str(module[expression.args[0]].attrs["node"]))

    relax.analysis.post_order_visit(function, visit)
    return found


def _tensor(shape: Shape) -> Any:
    return script.Tensor(shape, "float32")


def _constants(model: onnx.ModelProto) -> dict[str, Any]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _shapes(model: onnx.ModelProto) -> dict[str, Shape]:
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    return {
        each.name: tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim)
        for each in (*graph.input, *graph.value_info, *graph.output)
    }


# Relax

_KNOWN: dict[Any, tuple[Any, tuple[Any, ...]]] = {}
"""Functions of nodes that have been imported."""


def _imported(node: onnx.NodeProto, shapes: dict[str, Shape], constants: dict[str, Any]) -> _Call:
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    alone.name = ""
    alone.input[:] = [f"i{place}" for place in range(len(node.input))]
    alone.output[:] = [f"o{place}" for place in range(len(node.output))]
    given = tuple(constants.get(name, shapes.get(name)) for name in node.input)
    key = (alone.SerializeToString(), str(given))
    results = [shapes[name] for name in node.output]
    if key not in _KNOWN:
        _KNOWN[key] = _alone(alone, given, results)
    function, operands = _KNOWN[key]
    names = dict(zip(alone.input, node.input, strict=True))
    read = tuple(names[each] if isinstance(each, str) else each for each in operands)
    return _Call(node.name, function, read, tuple(node.output), tuple(map(_tensor, results)))


def _alone(
    node: onnx.NodeProto, given: Sequence[Any], results: Sequence[Shape]
) -> tuple[Any, tuple[Any, ...]]:
    """The one function that a node becomes, and what it is called with."""
    operands = dict(zip(node.input, given, strict=True))
    graph = helper.make_graph(
        [node],
        "alone",
        [_described(name, shape) for name, shape in operands.items() if isinstance(shape, tuple)],
        [_described(name, shape) for name, shape in zip(node.output, results, strict=True)],
        [
            numpy_helper.from_array(array, name)
            for name, array in operands.items()
            if not isinstance(array, tuple)
        ],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    module = from_onnx(model, keep_params_in_input=False)
    steps = relax.transform
    for step in (steps.LegalizeOps(), steps.AnnotateTIROpPattern()):
        module = step(module)
    bindings = [each for block in module["main"].body.blocks for each in block.bindings]
    (call,) = [each.value for each in bindings if isinstance(each.value, relax.Call)]
    read = (each.name if isinstance(each, relax.Var) else each for each in call.args[1])
    return module[call.args[0]], tuple(read)


def _described(name: str, shape: Shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


# Relay


class _Walk:
    """The vertices of Relay's graph, operands first, from one output after the other."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._scalars = {name for name, array in _constants(model).items() if not array.shape}
        self._shapes = _shapes(model)
        self._seen: set[str] = set()

    def steps(self) -> Iterable[_Step]:
        for end in self._graph.output:
            yield from self._value(end.name)

    def _value(self, name: str) -> Iterator[_Step]:
        if name in self._scalars and name not in self._seen:
            self._seen.add(name)
            yield _vertex(name, 0, ())
        node = self._makers.get(name)
        if node is None:
            return
        if len(node.output) == 1:
            yield from self._node(node)
        elif name not in self._seen:
            self._seen.add(name)
            yield from self._node(node)
            yield _Field(node.name, list(node.output).index(name), name)

    def _node(self, node: onnx.NodeProto) -> Iterator[_Step]:
        if node.name in self._seen:
            return
        self._seen.add(node.name)
        operands = tuple(node.input[:1] if node.op_type in PARAMETRISED else node.input)
        for operand in operands:
            yield from self._value(operand)
        if node.op_type == "Concat":
            bundle = f"tuple_{node.name}"
            yield _vertex(bundle, TUPLE_KIND, operands)
            operands = (bundle,)
        yield _vertex(node.name, self._kind(node), operands, tuple(node.output))

    def _kind(self, node: onnx.NodeProto) -> int:
        if node.op_type not in BROADCASTING:
            return RELAY_KINDS[node.op_type]
        return int(self._shapes[node.output[0]] not in map(self._shapes.get, node.input))


def _vertex(node: str, kind: int, operands: tuple[str, ...], results: Sequence[str] = ()) -> _Call:
    results = tuple(results) or (node,)
    function = _dummy(len(operands), len(results)).with_attr("op_pattern", kind)
    return _Call(node, function, operands, results, (_tensor(DUMMY),) * len(results))


@functools.cache
def _dummy(operands: int, results: int) -> Any:
    given = [te.placeholder(DUMMY, "float32") for _ in range(operands)]
    zero = te.const(0.0, "float32")
    made = [
        te.compute(DUMMY, lambda i, j: sum((each(i, j) for each in given), zero))
        for _ in range(results)
    ]
    return te.create_prim_func([*given, *made]).without_attr("global_symbol")
