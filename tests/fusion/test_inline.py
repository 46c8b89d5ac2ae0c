"""Taking groups apart gives back the model they were made of, message by message."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from relayout.errors import BadModelError
from relayout.graph.io.inline import NOT_AS_WRITTEN, inlined
from relayout.graph.io.load import load
from relayout.graph.io.places import PRIMITIVE, places_of, places_text
from tests.fusion.cutting import cut, grouped
from tests.fusion.running import assert_runs_alike, small
from tests.graph.difference import difference
from tests.graph.makers import complete, doubling_functions, node
from tests.suites.backend import case, case_names
from tests.suites.random_graphs import random_graph


def assert_comes_back(given: onnx.ModelProto, seed: int) -> int:
    """How many functions there were in between."""
    result = cut(given, seed)
    back, notices = inlined(result)
    assert notices == []
    assert list(difference(given, back)) == []
    assert back.SerializeToString(deterministic=True) == given.SerializeToString(deterministic=True)
    return len(result.functions) - len(given.functions)


@pytest.mark.parametrize("seed", range(12))
def test_a_model_with_every_field_comes_back(seed: int) -> None:
    assert assert_comes_back(complete(), seed) > 0


def test_random_graphs_come_back() -> None:
    assert sum(assert_comes_back(random_graph(seed).model, seed) for seed in range(60)) > 120


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_backend_models_come_back() -> None:
    """Many of them are the bodies of functions, spelled out as small graphs."""
    models = [case(kind, name).model for kind, name in case_names()[::18] if kind == "node"]
    editable = [given for given in models if load(given).frozen is None]
    made = sum(assert_comes_back(given, number) for number, given in enumerate(editable))
    assert len(editable) > 90
    assert made > 30


def test_the_order_of_nodes_comes_back() -> None:
    nodes = [
        node("Relu", "x", "a"),
        node("Neg", "a", "early"),
        node("Abs", "x", "other"),
        node("Exp", "a", "b"),
        node("Sum", "early other b", "y"),
    ]
    given = small(nodes)
    result = grouped(given, "a b")
    assert [entry.key for entry in result.graph.metadata_props] == ["relayout.order"]
    assert inlined(result) == (given, [])


def test_a_model_without_groups_is_given_back() -> None:
    given = complete()
    back, notices = inlined(given)
    assert back is given
    assert notices == []


# models that somebody changed


def changed() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    given = small([node("Relu", "x", "a"), node("Exp", "a", "b"), node("Neg", "b", "y")])
    return given, grouped(given, "a b")


def assert_taken_apart(given: onnx.ModelProto, result: onnx.ModelProto) -> onnx.ModelProto:
    back, notices = inlined(result)
    assert notices == [NOT_AS_WRITTEN]
    assert not back.functions
    assert [entry.domain for entry in back.opset_import] == [""]
    assert_runs_alike(given, back)
    return back


def test_a_renamed_operand() -> None:
    given, result = changed()
    result.graph.node[0].output[0] = result.graph.node[1].input[0] = "renamed"
    assert_taken_apart(given, result)


def test_a_node_that_was_taken_out() -> None:
    given, result = changed()
    result.graph.node[0].output[0] = "y"
    del result.graph.node[1]
    del given.graph.node[2]
    given.graph.node[1].output[0] = "y"
    assert_taken_apart(given, result)


def test_a_call_that_was_doubled() -> None:
    given, result = changed()
    again = result.graph.node.add()
    again.CopyFrom(result.graph.node[0])
    again.output[0] = "z"
    result.graph.output.append(helper.make_tensor_value_info("z", 1, [2, 3]))
    given.graph.node.append(node("Relu", "x", "c"))
    given.graph.node.append(node("Exp", "c", "z"))
    given.graph.output.append(result.graph.output[1])
    assert_taken_apart(given, result)


def test_a_group_that_calls_a_group() -> None:
    given, result = changed()
    inner = result.functions[0]
    outer = result.functions.add()
    outer.CopyFrom(inner)
    outer.name = "outer"
    call = result.graph.node[0]
    del outer.node[:]
    outer.node.add().CopyFrom(call)
    outer.opset_import.add(domain=inner.domain, version=1)
    call.op_type = "outer"
    assert_taken_apart(given, result)


def test_groups_that_expand_without_end_are_refused() -> None:
    endless = doubling_functions(40)
    for function in endless.functions:
        function.metadata_props.add(key=PRIMITIVE, value="1")
    with pytest.raises(BadModelError, match="expand to"):
        inlined(endless)


@pytest.mark.parametrize("places", ["5-6", "0", "1 1", "nonsense", "1-0"])
def test_places_that_cannot_be(places: str) -> None:
    given, result = changed()
    (entry,) = [e for e in result.functions[0].metadata_props if e.key == "relayout.nodes"]
    entry.value = places
    assert_taken_apart(given, result)


def test_a_copy_that_was_changed() -> None:
    nodes = [node("Relu", "x", "a"), node("Exp", "a", "b"), node("Add", "a b", "y")]
    given = small(nodes)
    result = grouped(given, "a b", repeated="a")
    assert inlined(result) == (given, [])
    result.functions[0].node[0].op_type = given.graph.node[0].op_type = "Sigmoid"
    result.graph.node[0].op_type = "Sigmoid"
    assert inlined(result) == (given, [])
    result.functions[0].node[0].name = "another"
    assert_taken_apart(given, result)


def test_an_added_node_takes_a_free_place() -> None:
    """What is added after the others leaves the places of the others alone."""
    given, result = changed()
    added = node("Abs", "y", "z")
    for each in (given, result):
        each.graph.node.append(added)
        each.graph.output.append(helper.make_tensor_value_info("z", 1, [2, 3]))
    assert inlined(result) == (given, [])


# places as text


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([0, 1, 2, 5], "0-2 5"),
        ([4, None, 5], "4 * 5"),
        ([2, 1, 0], "2 1 0"),
        ([None, None, 7, 8], "* * 7-8"),
    ],
)
def test_places_are_written_as_ranges(places: list[int | None], text: str) -> None:
    assert places_text(places) == text
    assert places_of(text) == places
