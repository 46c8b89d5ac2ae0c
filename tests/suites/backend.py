"""The onnx package's own backend tests as models with inputs and expected outputs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner, _normalize_tensor
from onnx.reference import ReferenceEvaluator

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
DRAWING = frozenset(("Bernoulli", "RandomUniformLike"))
"""Operators of the tests that draw numbers; what they are expected to give was drawn as well."""


@dataclass(frozen=True)
class Case:
    """One test: a model, what it is fed, what it must give."""

    name: str
    model: onnx.ModelProto
    data: Sequence[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    def run(self, model: onnx.ModelProto) -> None:
        """Raise if a model of the same interface does not give what is expected."""
        names = [value.name for value in model.graph.input]
        evaluator = ReferenceEvaluator(model)
        for inputs, outputs in self.data:
            feeds = dict(zip(names, inputs, strict=False))
            got = list(evaluator.run(None, feeds))
            Runner.assert_similar_outputs(outputs, got, rtol=self.rtol, atol=self.atol)

    def passes(self) -> bool:
        """Whether the reference evaluator is right about the model as it is, and not by chance."""
        if any(node.op_type in DRAWING for node in self.model.graph.node):
            return False
        try:
            self.run(self.model)
        except Exception:  # noqa: BLE001 - the evaluator fails in many ways, none of them ours
            return False
        return True


@cache
def case_names() -> list[tuple[str, str]]:
    return [(kind, test.name) for kind in KINDS for test in load_model_tests(kind=kind)]


@cache
def case(kind: str, name: str) -> Case:
    test = _tests(kind)[name]
    model = test.model if test.model is not None else onnx.load(Path(test.model_dir) / "model.onnx")
    data = [_values(pair) for pair in test.data_sets] if test.data_sets else _stored(test, model)
    return Case(name, model, data, test.rtol, test.atol)


@cache
def _tests(kind: str) -> dict[str, Any]:
    return {test.name: test for test in load_model_tests(kind=kind)}


def _values(pair: tuple[Sequence[Any], Sequence[Any]]) -> tuple[list[Any], list[Any]]:
    inputs, outputs = ([_normalize_tensor(x) for x in values] for values in pair)
    return inputs, outputs


def _stored(test: Any, model: onnx.ModelProto) -> list[tuple[list[Any], list[Any]]]:
    """The data sets that lie beside a model on disk."""
    found = []
    for folder in sorted(Path(test.model_dir).glob("test_data_set_*")):
        inputs = _read(folder, "input", [value.type for value in model.graph.input])
        outputs = _read(folder, "output", [value.type for value in model.graph.output])
        found.append((inputs, outputs))
    return found


def _read(folder: Path, kind: str, types: Sequence[onnx.TypeProto]) -> list[Any]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda file: int(file.stem.split("_")[1]))
    return [_message(file, declared) for file, declared in zip(files, types, strict=False)]


def _message(file: Path, declared: onnx.TypeProto) -> Any:
    if declared.HasField("sequence_type"):
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(file.read_bytes())
        return numpy_helper.to_list(sequence)
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return numpy_helper.to_array(tensor)


def wrapped(given: Case) -> onnx.ModelProto:
    """The model with a Transpose and its inverse after each float input and before each output."""
    model = copy.deepcopy(given.model)
    graph = model.graph
    inputs, outputs = given.data[0]
    fixed = {tensor.name for tensor in graph.initializer}
    first, last, new_names = [], [], {}
    for value, data in zip(graph.input, inputs, strict=False):
        if value.name not in fixed and _wraps(data):
            new_names[value.name] = f"{value.name}__wrapped"
            first += _pair(value.name, new_names[value.name], data.ndim)
    for value, data in zip(graph.output, outputs, strict=False):
        if value.name not in new_names and _wraps(data):
            new_names[value.name] = f"{value.name}__wrapped"
            last += _pair(new_names[value.name], value.name, data.ndim)
    _rename(graph, new_names)
    nodes = [*first, *graph.node, *last]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    if not any(opset.domain in {"", "ai.onnx"} for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("", 21))
    return model


def _wraps(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.ndim > 1 and data.dtype.kind == "f"


def _pair(source: str, target: str, rank: int) -> list[onnx.NodeProto]:
    there = [0, rank - 1, *range(1, rank - 1)] if rank > 2 else [1, 0]
    back = np.argsort(there).tolist()
    middle = f"{target}__middle"
    return [
        helper.make_node("Transpose", [source], [middle], perm=there),
        helper.make_node("Transpose", [middle], [target], perm=back),
    ]


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Rename values in a graph and in the bodies that capture them."""
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            bodies = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
            for body in bodies:
                _rename_body(body, names)


def _rename_body(body: onnx.GraphProto, names: dict[str, str]) -> None:
    own = {value.name for value in (*body.input, *body.initializer)}
    own |= {name for node in body.node for name in node.output}
    captured = {old: new for old, new in names.items() if old not in own}
    _rename(body, captured)
    for value in body.output:
        value.name = captured.get(value.name, value.name)
