"""Lengths that a model records and that a run contradicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayout
from relayout.graph.io.load import load
from relayout.graph.read import Shape, shape_of
from relayout.graph.region import regions_of

HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>\n'


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def shapes(text: str) -> dict[str, Shape | None]:
    return {str(value.name): shape_of(value) for value in _values(load(parsed(text)).ir)}


def _values(model: ir.Model) -> Iterator[ir.Value]:
    for region in regions_of(model):
        yield from region.graph.inputs
        yield from (value for node in region.graph for value in node.outputs)


def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return list(ort.InferenceSession(model.SerializeToString(), options).run(None, feeds))


# what is believed


def test_lengths_of_inputs_are_facts_and_those_of_results_are_not() -> None:
    found = shapes(
        """g (float[N,40,4] x, int64[2] s) => (float[N,54] y) <float[N,54,4] r> {
            r = Relu(x)
            y = Reshape(r, s)
        }"""
    )
    assert found["r"] == ("N", 40, 4)
    assert found["y"] is not None
    assert not any(isinstance(length, int) or length == "N" for length in found["y"])


def test_a_length_below_zero_is_unknown() -> None:
    found = shapes("g (float[-1,4] x) => (float[-1,4] y) { y = Concat<axis=0>(x, x, x) }")
    assert found["y"] is not None
    assert not isinstance(found["y"][0], int)
    assert found["y"][1] == 4


def test_a_record_of_an_unknown_operator_tells_its_rank_alone() -> None:
    model = parsed("g (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Relu(a) }")
    model.graph.node[0].domain = "com.microsoft"
    model.graph.node[0].op_type = "Unheard"
    record = helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N", 7])
    model.graph.value_info.append(record)
    loaded = load(model)
    first = shape_of(loaded.ir.graph.node(0).outputs[0])
    assert first is not None
    assert len(first) == 2
    assert {7, "N"}.isdisjoint(first)


LOOP = """g (float[N,3,4] x, int64 t, bool c) => (float[9,9,9] y) {{
    y, rows = Loop(t, c, x) <body = b (int64 i, bool d, float[{claim}] s)
        => (bool e, float[{claim}] r, float[{claim}] q) {{
            e = Identity(d)
            r = {step}
            q = Transpose<perm=[0,2,1]>(s)
        }}>
}}"""


@pytest.mark.parametrize("claim", ["N,54,4", "1,2,3", "A,B,C"])
@pytest.mark.parametrize(
    ("step", "carried"),
    [
        ("Relu(s)", ("N", 3, 4)),
        ("Concat<axis=1>(s, s)", ("N", None, 4)),
        ("Concat<axis=0>(s, s)", (None, 3, 4)),
        ("Transpose<perm=[0,2,1]>(s)", ("N", None, None)),
    ],
)
def test_what_a_loop_carries_is_found_by_induction(claim: str, step: str, carried: Shape) -> None:
    found = shapes(LOOP.format(claim=claim, step=step))
    for name in "sy":
        known = found[name]
        assert known is not None
        assert tuple(None if str(n).startswith("unk") else n for n in known) == carried


def test_a_loop_in_a_loop_gives_up_what_the_outer_one_changes() -> None:
    """The inner loop keeps its lengths, but the outer one does not begin it with the same."""
    found = shapes(
        """g (float[2,3] x, int64 t, bool c) => (float[2,3] y) {
            y = Loop(t, c, x) <body = outer (int64 i, bool d, float[2,3] s)
                => (bool e, float[2,3] o) {
                    e = Identity(d)
                    k = Loop(t, c, s) <body = inner (int64 j, bool f, float[2,3] u)
                        => (bool h, float[2,3] v) {
                            h = Identity(f)
                            v = Relu(u)
                        }>
                    o = Concat<axis=0>(k, k)
                }>
        }"""
    )
    for name in "suvkoy":
        known = found[name]
        assert known is not None
        assert not isinstance(known[0], int), name
        assert known[1] == 3, name


def test_what_a_scan_reads_and_carries_is_inferred() -> None:
    found = shapes(
        """g (float[5,3,4] x, float[3,4] k) => (float[1] y, float[1] z) {
            y, z = Scan<num_scan_inputs=1, body = b (float[9,9] s, float[8,8] e)
                => (float[9,9] r, float[1,2] q) { r = Add(s, e) q = Identity(e) }>(k, x)
        }"""
    )
    assert found["s"] == found["e"] == found["y"] == (3, 4)
    assert found["z"] == (5, 3, 4)


# what is made of it

CLAIMED = [54, 7]
"""Two lengths that no run has."""


def exported(tail: list[onnx.NodeProto], dims: list[Any], records: dict[str, list[Any]]) -> Any:
    """A model whose lengths depend on a value, with untrue records, and what to run it on."""
    head = [
        helper.make_node("NonZero", ["m"], ["places"]),
        helper.make_node("Squeeze", ["places", "first"], ["kept"]),
        helper.make_node("Gather", ["x", "kept"], ["some"], axis=1),
    ]
    graph = helper.make_graph(
        [*head, *tail],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6, 4, 2]),
            helper.make_tensor_value_info("m", TensorProto.BOOL, [6]),
            helper.make_tensor_value_info("t", TensorProto.INT64, [3]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, dims),
            helper.make_tensor_value_info(tail[-1].output[0], TensorProto.FLOAT, None),
        ],
        [
            numpy_helper.from_array(np.asarray([0]), "first"),
            numpy_helper.from_array(np.asarray([0, 0, -1]), "rest"),
            numpy_helper.from_array(np.asarray([2]), "last"),
            numpy_helper.from_array(np.asarray([-1, 4, 2]), "front"),
        ],
        value_info=[
            helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
            for name, dims in records.items()
        ],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    x = np.random.default_rng(0).normal(size=(2, 6, 4, 2)).astype(np.float32)
    kept = np.asarray([True, False, True, True, False, True])
    return model, {"x": x, "m": kept, "t": np.asarray([2, 8, 4])}


def _move(source: str, result: str, *perm: int) -> onnx.NodeProto:
    return helper.make_node("Transpose", [source], [result], perm=perm)


def _apply(op_type: str, sources: str, result: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, sources.split(), [result], **attributes)


TAILS: dict[str, tuple[int, list[onnx.NodeProto]]] = {
    "target": (
        3,
        [
            _move("some", "a", 0, 2, 3, 1),
            _apply("Reshape", "a t", "c"),
            _move("c", "y", 0, 2, 1),
        ],
    ),
    "read by shape": (
        3,
        [
            _move("some", "a", 0, 2, 3, 1),
            _apply("Reshape", "a t", "e"),
            _apply("Relu", "e", "y"),
            _apply("Shape", "y", "s"),
            _apply("Gather", "s last", "k", axis=0),
            _apply("Concat", "front k", "u", axis=0),
            _apply("Reshape", "y u", "heads"),
            _move("heads", "turned", 0, 3, 1, 2),
            _apply("Softmax", "turned", "z", axis=-1),
        ],
    ),
    "merged": (
        3,
        [
            _move("some", "a", 0, 2, 3, 1),
            _apply("Sigmoid", "a", "b"),
            _apply("Reshape", "b rest", "c"),
            _move("c", "y", 0, 2, 1),
        ],
    ),
    "computed": (
        3,
        [
            _move("some", "a", 0, 2, 1, 3),
            _apply("Reshape", "a rest", "b"),
            _apply("Shape", "b", "s"),
            _apply("Tanh", "a", "c"),
            _apply("Reshape", "c s", "d"),
            _move("d", "y", 0, 2, 1),
        ],
    ),
    "joined": (
        4,
        [
            _move("some", "a", 0, 3, 1, 2),
            _apply("Relu", "a", "b"),
            _apply("Concat", "a b", "c", axis=2),
            _move("c", "y", 0, 2, 3, 1),
        ],
    ),
    "padded": (
        4,
        [
            _move("some", "a", 1, 0, 2, 3),
            _apply("Softmax", "a", "b", axis=0),
            _apply("ReduceMax", "b", "c", axes=[2], keepdims=1),
            _apply("Mul", "b c", "d"),
            _move("d", "y", 1, 0, 2, 3),
        ],
    ),
}


@pytest.mark.parametrize("length", CLAIMED)
@pytest.mark.parametrize("minimize", ["bytes", "count"])
@pytest.mark.parametrize("case", TAILS)
def test_a_model_with_untrue_records_is_delivered(case: str, minimize: str, length: int) -> None:
    rank, tail = TAILS[case]
    records: dict[str, list[Any]] = {
        "some": [None, length, 4, 2],
        "a": [length, 2, 4, 2],
        "b": [2] * 3 + [length],
    }
    records["c"] = ["N", 8, length]
    dims = ["N", 8, length] if rank == 3 else ["N", length, length, 2]
    model, feeds = exported(tail, dims, records)
    result = relayout.optimize(model, minimize=minimize, verify=False)
    assert result.after.transposes <= result.before.transposes
    assert list(result.model.graph.output) == list(model.graph.output)
    for expected, got in zip(run(model, feeds), run(result.model, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    again = relayout.optimize(result.model, minimize=minimize, verify=False)
    assert again.before == result.after
