"""Every operator with rules: what is the same is proved, what gives other numbers is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import numpy as np
import onnx
import pytest
from onnx import helper

from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import ask
from relayout.targets.target import ONNX
from relayout.verify.proof.proof import prove_models
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Array, Sample
from tests.verify.proof import nodes
from tests.verify.proof.changes import changed, defaults_of, exchanged

ORDERS = 2
"""Orders tried with each sample."""


def _newest() -> list[Sample]:
    """One sample of each form of a node, at its newest opset."""
    found = {}
    for sample in ALL:
        ranks = tuple(None if x is None else x.ndim for x in sample.inputs)
        found[sample.domain, sample.op_type, repr(sorted(sample.attributes.items())), ranks] = (
            sample
        )
    return list(found.values())


SAMPLES = _newest()


def _answers(sample: Sample) -> Iterator[Transport]:
    """Restatements in which operands and results have orders of axes alone."""
    view = law.view_of(sample)
    rule = ONNX.rule_of(view)
    lead = sample.inputs[rule.lead(view)]
    assert lead is not None
    for order in reversed([one for one in law.orders(lead.ndim) if not one.is_identity]):
        answer = ask(rule, view, order)
        if not isinstance(answer, Refusal) and _moves_axes_alone(answer):
            yield answer


def _moves_axes_alone(answer: Transport) -> bool:
    given = [order for order in (*answer.inputs, *answer.outputs) if order is not None]
    return all(isinstance(order, Permutation) for order in given)


def _wrapped(sample: Sample, answer: Transport) -> onnx.ModelProto:
    """The given node on inputs that are stored in other orders, between Transposes."""
    model = law.model_of(sample)
    graph, node = model.graph, model.graph.node[0]
    before, after = [], []
    held = {tensor.name for tensor in graph.initializer}
    for place, order in enumerate(answer.inputs):
        name = node.input[place]
        if _moves(order) and name and name not in held:
            node.input[place] = f"{name}_given"
            before.append(_transpose(name, f"{name}_given", order.inverse()))
            _reorder(next(port for port in graph.input if port.name == name), order)
    for place, order in enumerate(answer.outputs):
        name = node.output[place]
        if _moves(order) and name:
            node.output[place] = f"{name}_given"
            after.append(_transpose(f"{name}_given", name, order))
    nodes = [*before, node, *after]
    copied = [onnx.NodeProto.FromString(one.SerializeToString()) for one in nodes]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(copied)
    return model


def _moves(order: StoredOrder | None) -> TypeGuard[Permutation]:
    return isinstance(order, Permutation) and not order.is_identity


def _transpose(source: str, result: str, order: Permutation) -> onnx.NodeProto:
    return helper.make_node("Transpose", [source], [result], perm=order.axes)


def _reorder(port: onnx.ValueInfoProto, order: Permutation) -> None:
    dims = port.type.tensor_type.shape.dim
    lengths = order.reorder(tuple(dim.dim_value for dim in dims))
    for dim, length in zip(dims, lengths, strict=True):
        dim.dim_value = length


def _named_alike(model: onnx.ModelProto, sample: Sample) -> onnx.ModelProto:
    """A restated model whose results have the names of the given ones."""
    names = [name for name in law.model_of(sample).graph.node[0].output if name]
    for output, name in zip(model.graph.output, names, strict=True):
        if output.name != name:
            model.graph.node.append(helper.make_node("Identity", [output.name], [name]))
            output.name = name
    return model


NOT_PROVED = frozenset(Path(__file__).with_name("not_proved.txt").read_text().splitlines())
"""Samples of operators that the prover takes as functions of their operands, stored as they are."""
PROVED = [sample for sample in SAMPLES if sample.id not in NOT_PROVED]


@pytest.mark.parametrize("sample", PROVED, ids=lambda sample: sample.id)
def test_restated_node_is_proved_identical(sample: Sample) -> None:
    for _, answer in zip(range(ORDERS), _answers(sample), strict=False):
        after = _named_alike(law.restated(sample, answer), sample)
        proof = prove_models(_wrapped(sample, answer), after)
        assert (proof.holds, proof.conditions) == (True, ()), (answer, proof)


def results(model: onnx.ModelProto, feeds: dict[str, Array], runtime: str) -> list[Array] | None:
    """What a model gives, None if the runtime does not take it."""
    read = {port.name for port in model.graph.input}
    fed = {name: array for name, array in feeds.items() if name in read}
    try:
        return [np.asarray(y) for y in law.run(model, fed, runtime)]
    except Exception:  # noqa: BLE001 - a change may make a node that no runtime takes
        return None


def _differ(one: list[Array], other: list[Array]) -> bool:
    pairs = list(zip(one, other, strict=True))
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
        return True
    return not all(
        np.allclose(a, b, 1e-3, 1e-3, equal_nan=True) if a.dtype.kind == "f" else (a == b).all()
        for a, b in pairs
    )


def _changed(sample: Sample, model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    yield from map(law.bare_model_of, changed(sample))
    yield from exchanged(model)


MISTAKEN = frozenset({"AveragePool", "BatchNormalization"})
"""The reference has faults here: it learns at version 9, and takes VALID windows for dense ones."""


def _forms() -> list[Sample]:
    """One sample of each set of attributes, operands and constants, and of each highest rank."""
    found = {}
    for sample in SAMPLES:
        ranks = [x.ndim for x in sample.inputs if x is not None]
        operands = tuple(x is not None for x in sample.inputs)
        form = (sample.domain, sample.op_type, *sorted(sample.attributes), operands)
        found[form, sample.constants, max(ranks, default=0)] = sample
    return list(found.values())


@pytest.mark.parametrize("sample", [*_forms(), *nodes.SAMPLES], ids=lambda sample: sample.id)
def test_node_that_gives_other_numbers_is_not_proved(sample: Sample) -> None:
    model, feeds = law.bare_model_of(sample), law.feeds_of(sample)
    runtime = "ort" if sample.op_type in MISTAKEN else sample.runtime
    given = results(model, feeds, runtime)
    for other in () if given is None else _changed(sample, model):
        found = results(other, feeds, runtime)
        if found is not None and _differ(given or [], found):
            assert not prove_models(model, other).holds, other


@pytest.mark.parametrize("sample", _forms(), ids=lambda sample: sample.id)
def test_a_default_that_is_written_out_changes_nothing(sample: Sample) -> None:
    model, other = law.bare_model_of(sample), law.bare_model_of(sample)
    other.graph.node[0].attribute.extend(defaults_of(sample))
    assert prove_models(model, other).identical


@pytest.mark.parametrize("sample", nodes.SAMPLES, ids=lambda sample: sample.id)
def test_a_sample_runs(sample: Sample) -> None:
    """So that its changes are compared with something."""
    assert results(law.bare_model_of(sample), law.feeds_of(sample), sample.runtime) is not None
