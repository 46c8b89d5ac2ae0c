"""Groups written as functions: what the file holds, that it is valid, and that it runs alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from relayout.graph.editing.writer import ORIGIN_KEY
from relayout.graph.io.inline import inlined
from relayout.graph.io.places import PRIMITIVE
from tests.digests import digests_with
from tests.fusion.cutting import cut, grouped
from tests.fusion.running import assert_runs_alike, small
from tests.graph.makers import FLOAT, complete, node, value
from tests.suites.random_graphs import random_graph
from tests.suites.test_random_graphs import assert_same_numbers

SCALAR = helper.make_tensor("two", FLOAT, [], [2.0])
WEIGHT = helper.make_tensor("w", FLOAT, [3], [1.0, 2.0, 3.0])


def chain() -> onnx.ModelProto:
    nodes = [node("Add", "x w", "a"), node("Mul", "a two", "b"), node("Relu", "b", "y")]
    given = small(nodes, initializers=[WEIGHT, SCALAR])
    given.graph.value_info.extend([value("a", [2, 3]), value("b", [2, 3])])
    return given


def test_a_group_is_one_call_of_a_function() -> None:
    result = grouped(chain(), "a b y", inside="two")
    (call,) = result.graph.node
    (function,) = result.functions
    assert (call.domain, call.op_type, call.name) == (
        "relayout.fused",
        "add_mul_relu_0",
        "add_mul_relu_0",
    )
    assert (list(call.input), list(call.output)) == (["x", "w"], ["y"])
    assert (function.domain, function.name) == ("relayout.fused", "add_mul_relu_0")
    assert (list(function.input), list(function.output)) == (["x", "w"], ["y"])
    assert [item.op_type for item in function.node] == ["Constant", "Add", "Mul", "Relu"]
    assert [entry.domain for entry in result.opset_import] == ["", "relayout.fused"]
    assert [entry.domain for entry in function.opset_import] == [""]


def test_a_function_states_what_it_is() -> None:
    result = grouped(chain(), "a b y", inside="two")
    notes = {entry.key: entry.value for entry in result.functions[0].metadata_props}
    assert notes == {
        PRIMITIVE: "1",
        "relayout.kind": "complex",
        "relayout.anchor": "Add_a",
        "relayout.nodes": "0-2",
        "relayout.initializers": "1",
        "relayout.value_info": "0-1 * * *",
    }
    origin = {entry.key: entry.value for entry in result.graph.node[0].metadata_props}
    assert origin == {ORIGIN_KEY: "Add_a, Mul_b, Relu_y"}


def test_a_function_of_views_alone_is_marked() -> None:
    nodes = [node("Flatten", "x", "a"), node("Identity", "a", "y")]
    (function,) = grouped(small(nodes), "a y").functions
    assert ("relayout.view", "1") in [(note.key, note.value) for note in function.metadata_props]


def test_types_go_with_the_values() -> None:
    result = grouped(chain(), "a b y", inside="two")
    assert not result.graph.value_info
    types = {record.name: record for record in result.functions[0].value_info}
    assert list(types) == ["a", "b", "x", "w", "y"]
    assert types["x"] == value("x", [2, 3])


def test_the_nodes_keep_their_messages() -> None:
    given = chain()
    given.graph.node[1].doc_string = "twice"
    result = grouped(given, "a b", inside="")
    assert list(result.functions[0].node) == list(given.graph.node[:2])
    assert list(result.functions[0].input) == ["x", "w", "two"]


def test_one_operator_stays_as_it_is() -> None:
    given = chain()
    assert grouped(given).SerializeToString() == given.SerializeToString()


def test_long_names_are_cut() -> None:
    names = [f"v{k}" for k in range(8)]
    nodes = [node("Relu", a, b) for a, b in zip(["x", *names], [*names, "y"], strict=True)]
    result = grouped(small(nodes), " ".join([*names, "y"]))
    assert result.functions[0].name == "relu_relu_relu_relu_relu_and_4_more_0"


def test_a_name_that_is_taken_is_not_used_again() -> None:
    given = chain()
    given.graph.node[2].name = "add_mul_0"
    assert grouped(given, "a b").functions[0].name == "add_mul_0_1"


# constants


def test_a_constant_that_others_read_stays_too() -> None:
    nodes = [node("Mul", "x two", "a"), node("Relu", "a", "b"), node("Mul", "b two", "y")]
    given = small(nodes, initializers=[SCALAR])
    result = grouped(given, "a b", inside="two")
    assert [tensor.name for tensor in result.graph.initializer] == ["two"]
    assert list(result.functions[0].input) == ["x"]
    assert_runs_alike(given, result)


def test_a_constant_inside_two_groups_is_kept_by_one() -> None:
    nodes = [
        *(node("Mul", "x two", "a"), node("Relu", "a", "b")),
        *(node("Mul", "b two", "c"), node("Relu", "c", "y")),
    ]
    given = small(nodes, initializers=[SCALAR])
    result = grouped(given, "a b", "c y", inside="two")
    assert not result.graph.initializer
    assert [len(function.node) for function in result.functions] == [3, 3]
    assert_runs_alike(given, result)


def test_a_constant_node_goes_inside() -> None:
    constant = helper.make_node("Constant", [], ["k"], value_float=3.0, name="three")
    nodes = [constant, node("Mul", "x k", "a"), node("Relu", "a", "y")]
    result = grouped(small(nodes), "a y", inside="k")
    assert [item.op_type for item in result.graph.node] == ["mul_relu_0"]
    assert result.functions[0].node[0] == constant
    assert_runs_alike(small(nodes), result)


def test_a_constant_that_notes_refer_to_stays() -> None:
    given = chain()
    note = given.graph.quantization_annotation.add(tensor_name="a")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="two")
    result = grouped(given, "a b", inside="two")
    assert [tensor.name for tensor in result.graph.initializer] == ["w", "two"]
    assert result.graph.quantization_annotation == given.graph.quantization_annotation


def test_data_in_other_files_stays_with_the_model(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(np.float32(2).tobytes())
    given = chain()
    outside = TensorProto(name="two", data_type=FLOAT, data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="data")
    given.graph.initializer[1].CopyFrom(outside)
    path = tmp_path / "in.onnx"
    path.write_bytes(given.SerializeToString())
    result = grouped_file(path, "a b y", inside="two")
    assert list(result.functions[0].input) == ["x", "w", "two"]
    assert inlined(result)[0] == given


def grouped_file(path: Path, *groups: str, inside: str) -> onnx.ModelProto:
    return grouped(path, *groups, inside=inside)  # type: ignore[arg-type]


# the graph around a group


def test_several_results_and_nodes_that_had_to_wait() -> None:
    nodes = [
        node("Relu", "x", "a"),
        node("Neg", "a", "early"),
        node("Abs", "x", "other"),
        node("Exp", "a", "b"),
        node("Add", "early b", "c"),
        node("Add", "c other", "y"),
    ]
    given = small(nodes)
    result = grouped(given, "a b")
    assert [item.op_type for item in result.graph.node] == [
        "Abs",
        "relu_exp_0",
        "Neg",
        "Add",
        "Add",
    ]
    assert list(result.functions[0].output) == ["a", "b"]
    assert_runs_alike(given, result)


def test_an_inner_value_that_is_an_output_keeps_its_name() -> None:
    given = chain()
    given.graph.output.append(value("a", [2, 3]))
    result = grouped(given, "a b y", inside="two")
    assert list(result.graph.node[0].output) == ["a", "y"]
    assert list(result.graph.output) == list(given.graph.output)
    assert_runs_alike(given, result)


def test_a_repeated_node_that_all_readers_repeat_is_gone() -> None:
    nodes = [
        node("Relu", "x", "a"),
        *(node("Exp", "a", "b"), node("Neg", "a", "c")),
        *(node("Abs", "b", "d"), node("Abs", "c", "e")),
        node("Add", "d e", "y"),
    ]
    given = small(nodes)
    result = grouped(given, "a b d", "a c e", repeated="a")
    assert [item.op_type for item in result.graph.node] == [
        "relu_exp_abs_0",
        "relu_neg_abs_1",
        "Add",
    ]
    assert_runs_alike(given, result)
    assert inlined(result) == (given, [])


def test_a_repeated_node_that_others_read_stays() -> None:
    nodes = [node("Relu", "x", "a"), node("Exp", "a", "b"), node("Add", "a b", "y")]
    given = small(nodes)
    result = grouped(given, "a b", repeated="a")
    assert [item.op_type for item in result.graph.node] == ["Relu", "relu_exp_0", "Add"]
    assert_runs_alike(given, result)


def test_groups_in_bodies_get_captured_values_as_arguments() -> None:
    branch = helper.make_graph(
        [node("Add", "outer two", "t_a"), node("Relu", "t_a", "t_y")],
        "then",
        [],
        [value("t_y", [2, 3])],
    )
    other = helper.make_graph([node("Neg", "outer", "e_y")], "else", [], [value("e_y", [2, 3])])
    nodes = [
        node("Abs", "x", "outer"),
        helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=other),
    ]
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    given = small(nodes, inputs=[value("x", [2, 3]), flag], initializers=[SCALAR])
    result = grouped(given, "t_a t_y", inside="two")
    bodies = {body.name: body.g for body in result.graph.node[1].attribute}
    (call,) = bodies["then_branch"].node
    assert (list(call.input), list(call.output)) == (["outer"], ["t_y"])
    assert [tensor.name for tensor in result.graph.initializer] == ["two"]
    assert_runs_alike(given, result)
    assert inlined(result) == (given, [])


def test_groups_in_functions_pass_attributes_on() -> None:
    join = helper.make_node("Concat", ["x", "x"], ["a"], name="join")
    join.attribute.add(name="axis", ref_attr_name="where", type=onnx.AttributeProto.INT)
    function = helper.make_function(
        *("local", "doubled", ["x"], ["y"], [join, node("Exp", "a", "y")]),
        *([helper.make_opsetid("", 18)], ["where"]),
    )
    call = helper.make_node("doubled", ["x"], ["y"], domain="local", where=1)
    opsets, outputs = [("", 18), ("local", 1)], [value("y", [2, 6])]
    given = small([call], outputs=outputs, functions=[function], opsets=opsets)
    result = grouped(given, "a y")
    names = [(item.domain, item.name) for item in result.functions]
    assert names == [("relayout.fused", "concat_exp_1"), ("local", "doubled")]
    assert list(result.functions[0].attribute) == ["where"]
    assert [entry.domain for entry in result.functions[1].opset_import] == [
        "",
        "relayout.fused",
    ]
    assert [entry.domain for entry in result.opset_import] == [
        "",
        "local",
        "relayout.fused",
    ]
    assert_runs_alike(given, result)
    assert inlined(result) == (given, [])


def test_an_old_file_is_raised_to_where_functions_begin() -> None:
    given = chain()
    given.ir_version = 4
    result = grouped(given, "a b y", inside="two")
    assert result.ir_version == 8
    assert_runs_alike(given, result)
    assert inlined(result) == (given, [])


# any model


@pytest.mark.parametrize("seed", range(0, 260, 5))
def test_random_groups_of_random_graphs_run_alike(seed: int) -> None:
    graph = random_graph(seed)
    result = cut(graph.model, seed)
    onnx.checker.check_model(result, full_check=True)
    assert list(result.graph.input) == list(graph.model.graph.input)
    assert list(result.graph.output) == list(graph.model.graph.output)
    assert_same_numbers(graph, result)


def test_the_same_groups_give_the_same_bytes_in_every_process() -> None:
    digests = [digests_with(_SCRIPT, hash_seed) for hash_seed in ("0", "4711")]
    assert digests[0]
    assert digests[0] == digests[1]


_SCRIPT = """
import hashlib
from relayout.optimizer.fuse import fuse
from tests.fusion.cutting import cut
from tests.graph.makers import complete
from tests.suites.random_graphs import random_graph

for seed in range(4):
    model = random_graph(seed).model
    for result in (cut(model, seed), cut(complete(), seed), fuse(model, verify=False).model):
        print(hashlib.sha256(result.SerializeToString(deterministic=True)).hexdigest())
"""


def test_the_given_model_is_not_touched() -> None:
    given = complete()
    before = given.SerializeToString(deterministic=True)
    cut(given, 1)
    assert given.SerializeToString(deterministic=True) == before
