"""Builders of models, good and bad, for the tests of loading and saving."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from relayout.graph.io.model import LoadedModel

FLOAT = TensorProto.FLOAT


def value(name: str, dims: Sequence[int | str | None] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, dims)


def model(
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    outputs: Sequence[onnx.ValueInfoProto] | None = None,
    initializers: Sequence[onnx.TensorProto] = (),
    opsets: Sequence[tuple[str, int]] = (("", 18),),
    ir_version: int = 10,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "main",
        list(inputs if inputs is not None else [value("x", [2, 3])]),
        list(outputs if outputs is not None else [value("y")]),
        initializer=list(initializers),
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets],
        ir_version=ir_version,
        functions=list(functions),
    )


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node whose operands and results are named in words."""
    return helper.make_node(
        op_type, inputs.split(), outputs.split(), name=f"{op_type}_{outputs}", **attributes
    )


def relu() -> onnx.ModelProto:
    return model([node("Relu", "x", "y")])


def with_weight(weight: onnx.TensorProto) -> onnx.ModelProto:
    return model([node("Add", "x w", "y")], initializers=[weight])


def external_tensor(
    location: str, dims: Sequence[int] = (2, 3), name: str = "w", **entries: object
) -> onnx.TensorProto:
    tensor = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def write(message: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(message.SerializeToString())
    return path


def write_external(folder: Path, *, large: int = 0) -> Path:
    """A model whose weight lies in `weights.bin`, followed there by `large` bytes of nothing."""
    folder.mkdir(exist_ok=True)
    data = np.arange(6, dtype=np.float32).tobytes()
    with (folder / "weights.bin").open("wb") as file:
        file.write(data)
        file.truncate(len(data) + large)
    weight = external_tensor("weights.bin", offset=0, length=24, checksum="00ff")
    nodes = [
        node("Transpose", "x", "a", perm=[1, 0]),
        node("Transpose", "a", "b", perm=[1, 0]),
        node("Add", "b w", "y"),
    ]
    initializers = [weight]
    if large:
        initializers.append(external_tensor("weights.bin", [large], "big", offset=24))
        initializers[1].data_type = TensorProto.UINT8
    return write(model(nodes, initializers=initializers), folder / "model.onnx")


def nested_ifs(depth: int) -> onnx.ModelProto:
    """An If in an If in an If, built in place: copying so deep a message fails."""
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    result = model([], inputs=[value("x", [2]), condition], outputs=[value("y0")])
    graph = result.graph
    for level in range(depth):
        branch = graph.node.add(op_type="If", input=["c"], output=[f"y{level}"])
        leaf = branch.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH)
        _fill_with_relu(leaf.g, f"e{level}")
        body = branch.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        graph = body.g
        graph.name = f"body{level}"
        graph.output.append(value(f"y{level + 1}"))
    graph.node.append(node("Relu", "x", f"y{depth}"))
    return result


def _fill_with_relu(graph: onnx.GraphProto, name: str) -> None:
    graph.name = "leaf"
    graph.node.append(node("Relu", "x", name))
    graph.output.append(value(name))


def function(name: str, nodes: Sequence[onnx.NodeProto]) -> onnx.FunctionProto:
    return helper.make_function(
        "local",
        name,
        ["x"],
        ["y"],
        list(nodes),
        [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)],
    )


def call(name: str, inputs: str, outputs: str) -> onnx.NodeProto:
    return helper.make_node(name, inputs.split(), outputs.split(), domain="local")


def doubling_functions(count: int) -> onnx.ModelProto:
    """Functions that call the next one twice each: small to write, endless to expand."""
    functions = [
        function(f"f{k}", [call(f"f{k + 1}", "x", "a"), call(f"f{k + 1}", "a", "y")])
        for k in range(count)
    ]
    functions.append(function(f"f{count}", [node("Relu", "x", "y")]))
    opsets = [("", 18), ("local", 1)]
    return model([call("f0", "x", "y")], opsets=opsets, functions=functions)


def take_out_pair(loaded: LoadedModel) -> None:
    """Let the reader of two Transposes in a row read what the first one reads."""
    graph = loaded.ir.graph
    first, second = [item for item in graph if item.op_type == "Transpose"][:2]
    source = first.inputs[0]
    assert source is not None
    second.outputs[0].replace_all_uses_with(source)
    graph.remove([second, first], safe=True)


def complete() -> onnx.ModelProto:
    """A model in which every kind of field is set, with a pair of Transposes to take out."""
    result = model(
        [
            node("Transpose", "x", "a", perm=[1, 0]),
            node("Transpose", "a", "b", perm=[1, 0]),
            node("Add", "b w", "c"),
            node("Add", "c sparse", "d"),
            helper.make_node("Dropout", ["d"], ["y", ""], name="trailing"),
            helper.make_node("Clip", ["d", "", ""], ["z"], name="empty_operands"),
            helper.make_node("Constant", [], ["k"], sparse_value=_sparse("")),
            helper.make_node(
                "If", ["flag"], ["chosen"], then_branch=_branch("t"), else_branch=_branch("e")
            ),
            call("twice", "z", "called"),
            helper.make_node("Mystery", ["z"], ["mystery"], domain="custom", words=[b"\xff"]),
        ],
        inputs=[
            value("x", ["N", 3]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
            value("unused", ["rows", None]),
            value("w", [2, 3]),
            helper.make_tensor_sequence_value_info("sequence", FLOAT, ["N"]),
            onnx.ValueInfoProto(name="map", type=_map_type()),
        ],
        outputs=[
            value("y", ["N", 3]),
            value("x", ["N", 3]),
            value("z"),
            value("z"),
            value("chosen", [None, 3]),
            value("called"),
            value("mystery", ["M"]),
        ],
        initializers=[
            helper.make_tensor("w", FLOAT, [2, 3], [1.0] * 6),
            helper.make_tensor("left_over", TensorProto.INT4, [3], [1, 2, 3]),
            TensorProto(
                name="words", data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"\xff"]
            ),
            helper.make_tensor("a_scale", FLOAT, [], [1.0]),
        ],
        opsets=[("", 18), ("ai.onnx", 18), ("local", 1), ("custom", 7), ("never.used", 3)],
        ir_version=11,
        functions=[
            function("twice", [node("Add", "x x", "y")]),
            function("never_called", [node("Relu", "x", "y")]),
        ],
    )
    _decorate(result)
    return result


def _branch(name: str) -> onnx.GraphProto:
    weight = helper.make_tensor(f"{name}_w", FLOAT, [3], [1.0, 2.0, 3.0])
    nodes = [node("Add", f"d {name}_w", f"{name}_sum"), node("Relu", f"{name}_sum", f"{name}_y")]
    graph = helper.make_graph(nodes, f"{name}_body", [], [value(f"{name}_y")], [weight])
    graph.doc_string = "a body"
    graph.sparse_initializer.append(_sparse(f"{name}_sparse"))
    graph.value_info.append(value(f"{name}_sum", ["N", 3]))
    return graph


def _sparse(name: str) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        helper.make_tensor(name, FLOAT, [1], [5.0]),
        helper.make_tensor("", TensorProto.INT64, [1], [4]),
        [2, 3],
    )


def _map_type() -> onnx.TypeProto:
    return helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, [None])
    )


def _decorate(result: onnx.ModelProto) -> None:
    """Set what the helpers of onnx leave out, and fields that no version of onnx knows."""
    result.producer_name, result.producer_version = "maker", "1.2"
    result.domain, result.model_version, result.doc_string = "a.b", 5, "doc"
    for key in ("second", "first", "empty"):
        result.metadata_props.add(key=key, value="" if key == "empty" else key)
    result.configuration.add(name="two", num_devices=2, device=["d0", "d1"])
    graph = result.graph
    graph.doc_string = "graph doc"
    graph.metadata_props.add(key="g", value="h")
    graph.sparse_initializer.append(_sparse("sparse"))
    graph.initializer[1].doc_string = "left over"
    for name in ("a", "c", "w"):
        graph.value_info.append(value(name, ["N", 3]))
    graph.value_info.append(value("of nothing", ["Q"]))
    graph.value_info[0].doc_string = "value doc"
    for name in ("a", "c"):
        note = graph.quantization_annotation.add(tensor_name=name)
        note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="a_scale")
    shape = graph.input[0].type.tensor_type.shape
    shape.dim[0].denotation = "DATA_BATCH"
    graph.input[0].type.denotation = "TENSOR"
    graph.input[0].doc_string = "input doc"
    add = graph.node[2]
    add.doc_string = "node doc"
    add.metadata_props.add(key="n", value="m")
    configuration = add.device_configurations.add(configuration_id="two")
    configuration.sharding_spec.add(tensor_name="b", device=[0, 1])
    result.functions[0].doc_string = "function doc"
    result.functions[0].value_info.append(value("y", ["P"]))
    training = result.training_info.add()
    training.algorithm.name = "training"
    training.update_binding.add(key="outside", value="also_outside")
    unknown = b"\xfa\x7d\x03odd"  # field 2015, three bytes: no message of onnx has it
    for message in (result, graph, add, graph.input[0], graph.initializer[0]):
        message.MergeFromString(unknown)
