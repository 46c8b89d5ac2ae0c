"""Operators that several nodes stand for: what they cost and what is known about their values."""

from __future__ import annotations

import dataclasses

import onnx_ir as ir
import pytest

from relayout.graph.editing.editor import Editor
from relayout.graph.editing.writer import ORIGIN_KEY
from relayout.graph.names import Names
from relayout.graph.region import regions_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Transport
from relayout.ops.registry import transport
from tests.ops import law
from tests.samples.sample import Sample, unit

LAST_CHANNELS = Permutation.of(0, 2, 3, 1)
X = unit(2, 3, 4, 5)
BATCH = Sample("BatchNormalization", 15, [X, *[unit(3)] * 4], constants=frozenset({1, 2, 3, 4}))
BATCH_AT_RUN_TIME = dataclasses.replace(BATCH, constants=frozenset())
INSTANCE = Sample("InstanceNormalization", 18, [X, unit(3), unit(3)])


@pytest.mark.parametrize(
    ("sample", "extra"),
    [
        (BATCH, 1),
        (BATCH_AT_RUN_TIME, 1),
        (INSTANCE, 4),
    ],
    ids=lambda item: item.id if isinstance(item, Sample) else str(item),
)
def test_passes_beyond_those_of_the_operator(sample: Sample, extra: int) -> None:
    answer = transport(law.view_of(sample), LAST_CHANNELS)
    assert isinstance(answer, Transport)
    assert answer.changes.extra_passes == extra


def test_an_order_the_operator_runs_in_costs_nothing() -> None:
    answer = transport(law.view_of(BATCH), Permutation.of(0, 1, 3, 2))
    assert isinstance(answer, Transport)
    assert not answer.changes.steps
    assert answer.changes.extra_passes == 0


def _steps(sample: Sample) -> dict[str, ir.Node]:
    """The nodes of the restated sample by what they are called."""
    model = ir.from_proto(law.model_of(sample))
    region = next(regions_of(model))
    (node,) = region.graph
    node.doc_string, node.metadata_props["scope"] = "a remark", "block.1"
    answer = transport(region.view(node), LAST_CHANNELS)
    assert isinstance(answer, Transport)
    operand = node.inputs[0]
    assert operand is not None
    stored = ir.Value(name="stored", type=operand.type, shape=ir.Shape(["N", 4, 5, 3]))
    Editor(region, Names.of(model)).restated(node, answer, [stored, *node.inputs[1:]])
    region.graph.remove(node, safe=False)
    return {step.outputs[0].name or "": step for step in region.graph}


def test_every_step_has_a_type_and_a_shape() -> None:
    steps = _steps(INSTANCE)
    shapes = {name: step.outputs[0].shape for name, step in steps.items()}
    assert shapes["y0_0231_mean"] == ir.Shape(["N", 1, 1, 3])
    assert shapes["y0_0231_centred"] == ir.Shape(["N", 4, 5, 3])
    assert shapes["y0_0231_factor"] == ir.Shape(["N", 1, 1, 3])
    assert shapes["y0_0231"] == ir.Shape([2, 4, 5, 3])
    assert {step.outputs[0].dtype for step in steps.values()} == {ir.DataType.FLOAT}


def test_steps_keep_the_metadata_of_the_node() -> None:
    for step in _steps(BATCH).values():
        assert step.doc_string == "a remark"
        assert step.metadata_props == {"scope": "block.1", ORIGIN_KEY: "node"}
