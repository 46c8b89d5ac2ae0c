"""Models in which one name has several definitions, as far as ONNX Runtime runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayout
from relayout.graph.io.load import load
from relayout.graph.io.save import save, to_proto
from relayout.graph.messages.apart import kept_apart, restore_names
from relayout.graph.region import regions_of
from tests.graph.refusal import refusal

FLOAT = TensorProto.FLOAT
SHAPE = [2, 3, 4]
X = np.random.default_rng(5).normal(size=SHAPE).astype(np.float32)


def _node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def _value(name: str, dims: Sequence[int | str] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, dims)


def _constant(name: str, number: float) -> onnx.NodeProto:
    tensor = numpy_helper.from_array(np.asarray(number, np.float32))
    return helper.make_node("Constant", [], [name], value=tensor)


def _weight(name: str, number: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(number, np.float32), name)


def _turned(op_type: str, source: str, result: str, inner: tuple[str, str]) -> list[Any]:
    """An operator between two Transposes that cancel, so that there is something to edit."""
    first, second = inner
    return [
        _node("Transpose", source, first, perm=[0, 2, 1]),
        _node(op_type, first, second),
        _node("Transpose", second, result, perm=[0, 2, 1]),
    ]


def _graph(
    nodes: list[Any],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: str,
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.GraphProto:
    declared = [
        helper.make_tensor_value_info(name, TensorProto.BOOL if name == "go" else FLOAT, None)
        for name in outputs.split()
    ]
    return helper.make_graph(nodes, "body", list(inputs), declared, list(initializers))


def _model(
    nodes: list[Any], initializers: Sequence[onnx.TensorProto] = (), functions: Sequence[Any] = ()
) -> onnx.ModelProto:
    constants = [
        numpy_helper.from_array(np.asarray(2), "trips"),
        numpy_helper.from_array(np.asarray(True), "true"),
        *initializers,
    ]
    graph = helper.make_graph(
        nodes, "g", [_value("x", SHAPE)], [_value(n) for n in _last(nodes)], constants
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8, functions=list(functions))


def _last(nodes: list[Any]) -> list[str]:
    return [name for name in nodes[-1].output if name]


LOOP = [
    helper.make_tensor_value_info("round", TensorProto.INT64, []),
    helper.make_tensor_value_info("on", TensorProto.BOOL, []),
]
GO = _node("Identity", "on", "go")


def _loop(nodes: list[Any], state: str, result: str, *initializers: Any) -> onnx.GraphProto:
    return _graph([GO, *nodes], [*LOOP, _value(state, SHAPE)], f"go {result}", initializers)


def _branch(op_type: str, result: str = "r") -> onnx.GraphProto:
    return _graph(_turned(op_type, "x", result, ("a", "b")), [], result)


def cases() -> Iterator[tuple[str, onnx.ModelProto]]:
    turn = _turned("Relu", "x", "s", ("p", "q"))
    inner = _turned("Sigmoid", "s", "t", ("u", "v"))
    yield (
        "the operand of a loop's body is named like an outer value",
        _model([*turn, _node("Loop", "trips true s", "y", body=_loop(inner, "s", "t"))]),
    )
    yield (
        "the operand of a loop's body is named like the input",
        _model(
            [
                _node(
                    "Loop",
                    "trips true x",
                    "y",
                    body=_loop(_turned("Exp", "x", "t", ("u", "v")), "x", "t"),
                )
            ]
        ),
    )
    yield (
        "a body's result is named like the result of its loop, and like a later value",
        _model(
            [
                _node(
                    "Loop",
                    "trips true x",
                    "y",
                    body=_loop(_turned("Tanh", "k", "y", ("u", "late")), "k", "y"),
                ),
                *_turned("Neg", "y", "late", ("m", "n")),
                _node("Add", "late y", "z"),
            ]
        ),
    )
    yield (
        "a body's initialiser is named like an outer one",
        _model(
            [
                _node(
                    "Loop",
                    "trips true x",
                    "k",
                    body=_loop(
                        [*_turned("Cos", "q", "t", ("u", "v")), _node("Add", "t w", "o")],
                        "q",
                        "o",
                        _weight("w", 7),
                    ),
                ),
                _node("Add", "k w", "y"),
            ],
            [_weight("w", 100)],
        ),
    )
    yield (
        "both branches use the same names",
        _model([_node("If", "true", "y", then_branch=_branch("Relu"), else_branch=_branch("Neg"))]),
    )
    yield (
        "two bodies one after the other use the same names",
        _model(
            [
                _node("Loop", "trips true x", "m", body=_loop(inner, "s", "t")),
                _node("Loop", "trips true m", "y", body=_loop(inner, "s", "t")),
            ]
        ),
    )
    yield (
        "a branch in a loop in a branch",
        _model(
            [
                _node(
                    "If",
                    "true",
                    "y",
                    then_branch=_graph(
                        [
                            _node(
                                "Loop",
                                "trips true x",
                                "r",
                                body=_loop(
                                    [
                                        _node(
                                            "If",
                                            "on",
                                            "t",
                                            then_branch=_branch("Relu"),
                                            else_branch=_branch("Abs"),
                                        )
                                    ],
                                    "x",
                                    "t",
                                ),
                            )
                        ],
                        [],
                        "r",
                    ),
                    else_branch=_branch("Neg"),
                )
            ]
        ),
    )
    yield (
        "a scan's body is named like what is around it",
        _model(
            [
                _node(
                    "Scan",
                    "x x",
                    "s y",
                    num_scan_inputs=1,
                    body=_graph(
                        [
                            _node("Transpose", "e", "u", perm=[1, 0]),
                            _node("Relu", "u", "v"),
                            _node("Transpose", "v", "y", perm=[1, 0]),
                            _node("Identity", "x", "s"),
                        ],
                        [_value("x", SHAPE), _value("e", SHAPE[1:])],
                        "s y",
                    ),
                )
            ]
        ),
    )
    yield (
        "a function has the names of the main graph",
        _model(
            [*turn, helper.make_node("twice", ["s"], ["y"], domain="local")],
            functions=[
                helper.make_function(
                    "local",
                    "twice",
                    ["x"],
                    ["y"],
                    [*_turned("Relu", "x", "s", ("p", "q")), _node("Add", "s x", "y")],
                    [helper.make_opsetid("", 17)],
                )
            ],
        ),
    )
    constants = [_constant("k", 1), _constant("k", 5)]
    yield (
        "two constants",
        _model([*constants, *turn, _node("Add", "s k", "y")]),
    )
    yield (
        "two constants, one of them after a reader",
        _model(
            [constants[0], *turn, _node("Add", "s k", "m"), constants[1], _node("Mul", "m k", "y")]
        ),
    )
    yield (
        "two initialisers",
        _model([*turn, _node("Add", "s k", "y")], [_weight("k", 1), _weight("k", 5)]),
    )
    yield (
        "an initialiser and a constant",
        _model([_constant("k", 5), *turn, _node("Add", "s k", "y")], [_weight("k", 1)]),
    )


CASES = dict(cases())


def run(model: onnx.ModelProto) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return list(ort.InferenceSession(model.SerializeToString(), options).run(None, {"x": X}))


@pytest.mark.parametrize("case", CASES)
def test_the_optimised_model_gives_the_same(case: str) -> None:
    given = CASES[case]
    before = given.SerializeToString(deterministic=True)
    result = relayout.optimize(given)
    assert given.SerializeToString(deterministic=True) == before
    assert result.accepted
    assert result.after.transposes < result.before.transposes
    for expected, got in zip(run(given), run(result.model), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_every_name_has_one_definition_inside(case: str) -> None:
    for root in _roots(CASES[case]):
        names = Counter(name for region in root for name in region)
        assert max(names.values()) == 1


def _roots(model: onnx.ModelProto) -> Iterator[list[list[str]]]:
    regions = list(regions_of(load(model).ir))
    for in_function in (False, True):
        bodies = [
            [
                str(value.name)
                for value in (
                    *region.graph.inputs,
                    *region.graph.initializers.values(),
                    *(value for node in region.graph for value in node.outputs),
                )
            ]
            for region in regions
            if region.in_function is in_function
        ]
        if bodies:
            yield bodies


@pytest.mark.parametrize("case", CASES)
def test_names_are_written_back_as_they_came(case: str, tmp_path: Path) -> None:
    given = CASES[case]
    loaded = load(given)
    repeats_constants = "constant" in case or case == "two initialisers"
    assert (to_proto(loaded) == given) is not repeats_constants
    assert bool(loaded.notices) is repeats_constants
    save(loaded, tmp_path / "same.onnx", changed=False)
    assert onnx.load(tmp_path / "same.onnx") == given


@pytest.mark.parametrize("case", [case for case in CASES if "operand" in case])
def test_operands_of_bodies_keep_their_names_in_the_result(case: str) -> None:
    given = CASES[case].graph.node[-1].attribute[0].g
    made = relayout.optimize(CASES[case], verify=False).model.graph.node[-1].attribute[0].g
    assert [value.name for value in made.input] == [value.name for value in given.input]


def test_the_body_of_a_foreign_operator_keeps_its_interface() -> None:
    """ONNX Runtime finds the operands and results of a BeamSearch's bodies by their names."""
    decoder = _graph(_turned("Relu", "x", "logits", ("u", "v")), [_value("x", SHAPE)], "logits")
    encoder = _graph(_turned("Exp", "x", "logits", ("u", "v")), [_value("x", SHAPE)], "logits")
    search = _node("BeamSearch", "s", "y", decoder=decoder, encoder=encoder)
    search.domain = "com.microsoft"
    given = _model([*_turned("Relu", "x", "s", ("u", "v")), search])
    given.opset_import.add(domain="com.microsoft", version=1)
    result = relayout.optimize(given, verify=False)
    assert result.after.transposes < result.before.transposes
    for attribute in result.model.graph.node[-1].attribute:
        assert [value.name for value in attribute.g.input] == ["x"]
        assert [value.name for value in attribute.g.output] == ["logits"]


def test_a_name_is_not_restored_where_it_would_catch_what_is_read_from_outside() -> None:
    model = CASES["the operand of a loop's body is named like an outer value"]
    apart = kept_apart(model)
    body = next(a.g for a in apart.model.graph.node[-1].attribute if a.name == "body")
    assert apart.given == {"s_1": "s"}
    body.node.append(_node("Add", "s s_1", "both"))
    restore_names(apart.model, apart.given)
    assert list(body.node[-1].input) == ["s", "s_1"]
    assert body.input[2].name == "s_1"


def test_a_result_is_not_named_like_what_is_defined_before_its_body() -> None:
    """ONNX Runtime runs a body that defines a later name, and refuses one of an earlier."""
    model = CASES["a body's result is named like the result of its loop, and like a later value"]
    apart = kept_apart(model)
    assert apart.given == {"y_1": "y", "late_1": "late"}
    nodes = list(apart.model.graph.node)
    moved = [_node("Neg", "x", "late"), nodes[0]]
    del apart.model.graph.node[:]
    apart.model.graph.node.extend(moved)
    restore_names(apart.model, apart.given)
    body = apart.model.graph.node[1].attribute[0].g
    assert [node.output[0] for node in body.node] == ["go", "u", "late_1", "y"]


def test_records_and_notes_follow_their_values() -> None:
    model = CASES["both branches use the same names"]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for attribute in copy.graph.node[0].attribute:
        attribute.g.value_info.append(_value("a", [2, 4, 3]))
        note = attribute.g.quantization_annotation.add(tensor_name="b")
        note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="r")
    apart = kept_apart(copy)
    second = apart.model.graph.node[0].attribute[1].g
    assert second.value_info[0].name == "a_1"
    assert second.quantization_annotation[0].tensor_name == "b_1"
    assert second.quantization_annotation[0].quant_parameter_tensor_names[0].value == "r_1"
    restore_names(apart.model, apart.given)
    assert apart.model == copy


@pytest.mark.parametrize(
    "nodes",
    [
        [_node("Relu", "x", "y"), _node("Neg", "x", "y")],
        [_constant("y", 1), _node("Neg", "x", "y")],
    ],
)
def test_a_value_that_nodes_write_twice_is_refused(nodes: list[Any]) -> None:
    assert "writes 'y', which is defined already" in refusal(_model(nodes))
