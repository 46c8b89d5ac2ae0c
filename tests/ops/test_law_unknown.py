"""The law where less is known than is: a rule refuses, or its answer holds all the same."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import helper

from relayout.graph.read import NodeView
from relayout.layout.splitting import AxisMap
from relayout.layout.transport import Refusal, Transport
from relayout.ops.registry import axis_map, rule_of, shuffles_of, transport
from relayout.ops.rule import ask
from tests.ops import law
from tests.ops.test_law import assert_gives
from tests.ops.test_shuffle_law import shuffles
from tests.samples import ALL
from tests.samples.sample import Sample


def without_ranks(model: onnx.ModelProto) -> None:
    for port in model.graph.input:
        port.type.tensor_type.ClearField("shape")


def with_open_lengths(model: onnx.ModelProto) -> None:
    for port in model.graph.input:
        for axis, dim in enumerate(port.type.tensor_type.shape.dim):
            dim.dim_param = f"{port.name}_{axis}"


def with_constants_at_run_time(model: onnx.ModelProto) -> None:
    for tensor in model.graph.initializer:
        port = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        model.graph.input.append(port)
    del model.graph.initializer[:]


WAYS = (without_ranks, with_open_lengths, with_constants_at_run_time)


def _view(sample: Sample, forget: Callable[[onnx.ModelProto], None]) -> NodeView:
    model = law.bare_model_of(sample)
    forget(model)
    return law.view_in(onnx.shape_inference.infer_shapes(model, data_prop=True))


def _newest() -> list[Sample]:
    """One sample of each form of a node, at its newest version."""
    found = {}
    for sample in ALL:
        ranks = tuple(None if x is None else x.ndim for x in sample.inputs)
        form = (sample.domain, sample.op_type, *sorted(sample.attributes), ranks, sample.constants)
        found[form] = sample
    return list(found.values())


@pytest.mark.parametrize("sample", _newest(), ids=lambda sample: sample.id)
def test_an_answer_holds_though_less_was_known(sample: Sample) -> None:
    known = law.view_of(sample)
    for way in WAYS:
        view = _view(sample, way)
        _assert_restated(sample, known, view)
        _assert_pulled(known, view)
        _assert_mapped(known, view)


def _assert_restated(sample: Sample, known: NodeView, view: NodeView) -> None:
    lead = sample.inputs[rule_of(known).lead(known)]
    assert lead is not None
    others = (order for order in law.orders(lead.ndim) if not order.is_identity)
    answers = (ask(rule_of(view), view, order) for order in others)
    held = next((answer for answer in answers if isinstance(answer, Transport)), None)
    if held is not None:
        law.hold(sample, held)
    for port, x in enumerate(sample.inputs):
        if x is not None and port not in sample.constants:
            for order in shuffles(x.shape)[:1]:
                for answer in shuffles_of(view).rule(view, {port: order}):
                    law.hold(sample, answer)


def _assert_pulled(known: NodeView, view: NodeView) -> None:
    rank = known.result_rank(0)
    for wanted in () if rank is None else [*law.orders(rank)][1::4]:
        pulled = rule_of(view).pull(view, wanted)
        if not isinstance(pulled, Refusal) and isinstance(transport(known, pulled), Transport):
            assert_gives(wanted, known, pulled)


def _assert_mapped(known: NodeView, view: NodeView) -> None:
    """No axis may be split that may not where all is known."""
    found, wanted = axis_map(view), axis_map(known)
    if isinstance(found, AxisMap):
        assert isinstance(wanted, AxisMap)
        assert found.operands == wanted.operands
        assert found.whole >= wanted.whole
