"""The parts in which a model is written are the bytes that protobuf makes of it at once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relayout.graph.io.encoding import encoded_parts
from relayout.graph.io.sources import BINARY
from relayout.graph.messages.skeleton import without_initializers
from tests.suites.random_graphs import random_graph


def _at_once(model: onnx.ModelProto) -> bytes:
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _with_everything() -> onnx.ModelProto:
    """A model with fields before and after the graph, and before and after its constants."""
    weight = numpy_helper.from_array(np.arange(300, dtype=np.float32), "w")
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [300])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "named",
        [info],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [300])],
        [weight, numpy_helper.from_array(np.array(["a", ""], object), "texts")],
        doc_string="of the graph",
        value_info=[helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    graph.metadata_props.add(key="k", value="v")
    model = helper.make_model(graph, producer_name="p", doc_string="of the model")
    model.metadata_props.add(key="", value="")
    model.training_info.add().initialization.name = "t"
    return model


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_of_random_models_are_their_bytes(seed: int) -> None:
    model = random_graph(seed).model
    assert b"".join(encoded_parts(model, BINARY)) == _at_once(model)


def test_each_constant_is_a_part_of_its_own() -> None:
    model = _with_everything()
    parts = list(encoded_parts(model, BINARY))
    assert b"".join(parts) == _at_once(model)
    assert all(tensor.SerializeToString() in parts for tensor in model.graph.initializer)


@pytest.mark.parametrize("inside", ["model", "graph", "constant"])
def test_fields_that_nobody_knows_are_kept(inside: str) -> None:
    model = _with_everything()
    holder = {"model": model, "graph": model.graph, "constant": model.graph.initializer[0]}[inside]
    holder.MergeFromString(b"\xc2\x3e\x03abc")
    assert b"abc" in _at_once(model)
    assert b"".join(encoded_parts(model, BINARY)) == _at_once(model)


@pytest.mark.parametrize("form", [BINARY, "textproto"])
@pytest.mark.parametrize("is_known", [True, False], ids=["known fields", "unknown fields"])
def test_constants_may_lie_apart(form: str, *, is_known: bool) -> None:
    model = _with_everything()
    if not is_known:
        model.graph.MergeFromString(b"\xc2\x3e\x03abc")
    rest = without_initializers(model)
    assert not rest.graph.initializer
    parts = encoded_parts(rest, form, model.graph.initializer[:])
    assert b"".join(parts) == b"".join(encoded_parts(model, form))
    assert not rest.graph.initializer


def test_a_model_of_nothing_is_written() -> None:
    model = onnx.ModelProto()
    assert b"".join(encoded_parts(model, BINARY)) == _at_once(model) == b""
