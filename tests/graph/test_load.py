"""What is known of a model once it is loaded."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from relayout.graph.io.load import load
from relayout.graph.io.save import save, to_proto
from tests.graph.makers import FLOAT, complete, model, node, relu, value, write, write_external


def shapes(graph: ir.Graph) -> dict[str, list[int | str | None]]:
    """The dims of every value whose rank is known."""
    values = [*graph.inputs, *(result for item in graph for result in item.outputs)]
    return {
        item.name or "": [dim if isinstance(dim, int) else dim.value for dim in item.shape]
        for item in values
        if item.shape is not None
    }


# the forms of a model


@dataclass
class Exported:
    """Looks like what torch gives back."""

    model: ir.Model

    @property
    def model_proto(self) -> onnx.ModelProto:
        raise AssertionError("a large model has no message")


def test_every_form_of_a_model_is_accepted(tmp_path: Path) -> None:
    given = relu()
    path = write(given, tmp_path / "m.onnx")
    for source in (given, path, str(path), ir.from_proto(given), Exported(ir.from_proto(given))):
        loaded = load(source)
        assert [item.op_type for item in loaded.ir.graph] == ["Relu"]
        assert loaded.path == (path if source in (path, str(path)) else None)


def test_a_large_model_in_memory_goes_through_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relayout.graph.io.sources.LARGEST_IN_MEMORY", 1000)
    array = np.arange(1024, dtype=np.float32)
    weight = onnx.numpy_helper.from_array(array, "w")
    loaded = load(ir.from_proto(model([node("Add", "x w", "y")], initializers=[weight])))
    gc.collect()
    tensor = loaded.ir.graph.initializers["w"].const_value
    assert isinstance(tensor, ir.ExternalTensor)
    assert np.array_equal(tensor.numpy(), array)
    (tmp_path / "model.data").write_bytes(b"precious")
    save(loaded, tmp_path / "out.onnx", changed=False)
    assert (tmp_path / "out.onnx.data").exists()
    assert np.array_equal(
        onnx.numpy_helper.to_array(onnx.load(tmp_path / "out.onnx").graph.initializer[0]), array
    )


def test_an_ir_model_finds_its_external_data(tmp_path: Path) -> None:
    given = ir.load(write_external(tmp_path / "model"))
    tensor = load(given).ir.graph.initializers["w"].const_value
    assert tensor is not None
    assert tensor.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_given_message_is_not_edited() -> None:
    given = complete()
    before = given.SerializeToString(deterministic=True)
    loaded = load(given)
    loaded.ir.graph.node(-1).name = "edited"
    assert to_proto(loaded).graph.node[-1].name == "edited"
    assert given.SerializeToString(deterministic=True) == before


# shapes


def test_recorded_shapes_are_not_trusted() -> None:
    given = model([node("Transpose", "x", "a", perm=[1, 0]), node("Relu", "a", "y")])
    given.graph.value_info.append(value("a", [7, 7, 7]))
    loaded = load(given)
    assert shapes(loaded.ir.graph) == {"x": [2, 3], "a": [3, 2], "y": [3, 2]}
    assert to_proto(loaded) == given


def test_records_tell_ranks_where_nothing_is_inferred() -> None:
    odd = helper.make_node("Odd", ["x"], ["a"], domain="custom")
    given = model(
        [odd, node("Transpose", "a", "b", perm=[1, 2, 0]), node("Relu", "b", "y")],
        opsets=[("", 18), ("custom", 1)],
    )
    given.graph.value_info.extend([value("a", ["P", 4, 5]), value("b", [9])])
    known = shapes(load(given).ir.graph)
    assert [len(known[name]) for name in "aby"] == [3, 3, 3]
    assert not any(isinstance(length, int) for name in "aby" for length in known[name])


def test_the_lengths_of_outputs_are_inferred() -> None:
    declared: list[list[int | str | None]] = [["M", 3], [None, 3], [2, 3]]
    for dims in declared:
        given = model(
            [node("Relu", "x", "y")], inputs=[value("x", ["N", 3])], outputs=[value("y", dims)]
        )
        loaded = load(given)
        assert shapes(loaded.ir.graph) == {"x": ["N", 3], "y": ["N", 3]}
        assert to_proto(loaded) == given
    undeclared = model([node("Relu", "x", "y")])
    assert shapes(load(undeclared).ir.graph)["y"] == [2, 3]


@pytest.mark.parametrize("dims", [[2, 3, 1], [2, 4]])
def test_an_output_with_a_false_shape_is_reported(dims: list[int]) -> None:
    given = model([node("Relu", "x", "y")], outputs=[value("y", dims)])
    loaded = load(given)
    assert shapes(loaded.ir.graph)["y"] == [2, 3]
    assert "'y'" in loaded.notices[0]
    assert to_proto(loaded) == given


def test_an_output_that_is_an_input_keeps_the_shape_of_the_input() -> None:
    given = model([node("Relu", "x", "y")], outputs=[value("y"), value("x")])
    assert shapes(load(given).ir.graph)["x"] == [2, 3]


def test_shapes_flow_through_bodies() -> None:
    body = helper.make_graph(
        [node("Transpose", "x", "a", perm=[1, 0]), node("Relu", "a", "b")],
        "body",
        [],
        [value("b")],
    )
    branch = node("If", "c", "y", then_branch=body, else_branch=body)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    loaded = load(model([branch], inputs=[value("x", [2, 3]), condition]))
    inner = loaded.ir.graph.node(0).attributes["else_branch"].as_graph()
    assert shapes(inner) == {"a": [3, 2], "b": [3, 2]}
    assert shapes(loaded.ir.graph)["y"] == [3, 2]


def test_computed_shapes_and_large_weights() -> None:
    weights = onnx.numpy_helper.from_array(np.ones((3, 1000), np.float32), "w")
    target = onnx.numpy_helper.from_array(np.asarray([2, 10, 100]), "target")
    nodes = [
        node("MatMul", "x w", "a"),
        node("Reshape", "a target", "b"),
        node("Shape", "b", "s"),
        node("ConstantOfShape", "s", "y"),
    ]
    loaded = load(model(nodes, initializers=[weights, target]))
    assert shapes(loaded.ir.graph)["y"] == [2, 10, 100]
    tensor = loaded.ir.graph.initializers["w"].const_value
    assert tensor is not None
    assert tensor.numpy().sum() == 3000


def test_a_failing_inference_is_not_an_error() -> None:
    nodes = [node("Reshape", "x s", "a"), node("Relu", "a", "y"), node("Abs", "x", "z")]
    size = onnx.numpy_helper.from_array(np.asarray([5, 5]), "s")
    given = model(nodes, initializers=[size], outputs=[value("y"), value("z")])
    loaded = load(given)
    assert shapes(loaded.ir.graph)["z"] == [2, 3]
    assert to_proto(loaded) == given


# large constants, odd types


def test_large_constants_in_nodes_keep_their_data() -> None:
    array = np.arange(5000, dtype=np.float32)
    constant = helper.make_node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(array))
    loaded = load(model([constant, node("Add", "k k", "y")]))
    tensor = loaded.ir.graph.node(0).attributes["value"].as_tensor()
    assert np.array_equal(tensor.numpy(), array)
    assert shapes(loaded.ir.graph)["y"] == [5000]


def test_initialisers_that_are_inputs_are_defaults() -> None:
    weight = helper.make_tensor("w", FLOAT, [3], [1.0, 2.0, 3.0])
    given = model(
        [node("Add", "x w", "y")],
        inputs=[value("x", [2, 3]), value("w", [3])],
        initializers=[weight],
    )
    operand = load(given).ir.graph.node(0).inputs[1]
    assert operand is not None
    assert operand.is_graph_input()
    assert operand.is_initializer()


def test_old_models_list_all_initialisers_as_inputs() -> None:
    shape = onnx.numpy_helper.from_array(np.asarray([3, 2]), "s")
    inputs = [value("x", [2, 3]), helper.make_tensor_value_info("s", TensorProto.INT64, [2])]
    given = model(
        [node("Reshape", "x s", "y")],
        inputs=inputs,
        initializers=[shape],
        ir_version=3,
        opsets=[("", 8)],
    )
    loaded = load(given)
    assert loaded.frozen is None
    assert to_proto(loaded) == given


def test_shapes_do_not_depend_on_defaults_that_a_caller_may_override() -> None:
    shape = onnx.numpy_helper.from_array(np.asarray([3, 2]), "s")
    inputs = [value("x", [2, 3]), helper.make_tensor_value_info("s", TensorProto.INT64, [2])]
    for ir_version, known in ((3, True), (8, False)):
        given = model(
            [node("Reshape", "x s", "a"), node("Relu", "a", "y")],
            inputs=inputs,
            initializers=[shape],
            ir_version=ir_version,
            opsets=[("", 8)],
        )
        lengths = [3, 2] if known else [None, None]
        assert shapes(load(given).ir.graph)["a"] == lengths


def test_a_long_chain_loads_in_linear_time() -> None:
    def seconds(count: int) -> float:
        nodes = [node("Relu", f"v{k}", f"v{k + 1}") for k in range(count)]
        given = model(nodes, inputs=[value("v0", [2])], outputs=[value(f"v{count}")])
        start = time.process_time()
        load(given)
        return time.process_time() - start

    seconds(100)
    assert seconds(20_000) < 10 * max(seconds(5_000), 0.1)
