"""Images of other sizes: where runtimes want their channels, and what the choice makes of it."""

from __future__ import annotations

import onnx
import pytest

import relayout
from relayout.graph.io.load import load
from relayout.graph.region import regions_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal
from relayout.targets.images import parted_elsewhere, parted_in_ort
from relayout.targets.prices.table import shipped
from relayout.targets.target import OPENVINO, PartedBy
from tests.rewrite.rewriting import parse

PRICES = shipped("onnxruntime_x86_64")
AS_GIVEN, LAST = Permutation.of(0, 1, 2, 3), Permutation.of(0, 2, 3, 1)

RESIZED = """
<ir_version: 8, opset_import: ["" : {opset}]>
g (float[1,{channels},20,30] x) => (float[A,B,C,D] y) <float[4] scales = {{1, 1, 2, 2}}>
{{ y = {operator} }}
"""
ENTERING = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,20,30,32] x) => (float[A,B,C,D] y) <float[4] scales = {{1, 1, 2, 2}}> {{
  t = Transpose<perm = [0,3,1,2]>(x)
  r = Resize<mode = "{mode}">(t, , scales)
  y = Transpose<perm = [0,2,3,1]>(r)
}}
"""


def model_of(operator: str, channels: int = 32, opset: int = 17) -> onnx.ModelProto:
    return parse(RESIZED.format(operator=operator, channels=channels, opset=opset))


def lost(model: onnx.ModelProto, order: Permutation, parted: PartedBy = parted_in_ort) -> int:
    region = next(iter(regions_of(load(model).ir)))
    found = parted(region.view(next(iter(region.graph))), order)
    return 0 if found is None else found.nanoseconds(PRICES, {})


LINEAR, NEAREST = 'Resize<mode = "linear">(x, , scales)', 'Resize<mode = "nearest">(x, , scales)'


@pytest.mark.parametrize(
    ("model", "first", "last"),
    [
        (model_of(LINEAR), True, False),
        (model_of(LINEAR, channels=3), False, False),
        (model_of(NEAREST), False, True),
        (model_of('Resize<mode = "cubic">(x, , scales)'), False, False),
        (model_of('Upsample<mode = "linear">(x, scales)', opset=9), True, False),
        (model_of('Upsample<mode = "nearest">(x, scales)', opset=9), False, True),
        (model_of("Relu(x)"), False, False),
    ],
    ids=["linear", "few channels", "nearest", "cubic", "old linear", "old nearest", "another"],
)
def test_onnx_runtime_has_a_faster_order(model: onnx.ModelProto, first: bool, last: bool) -> None:
    assert (lost(model, AS_GIVEN) > 0, lost(model, LAST) > 0) == (first, last)


@pytest.mark.parametrize("operator", [LINEAR, NEAREST])
def test_other_runtimes_lose_by_channels_last(operator: str) -> None:
    model = model_of(operator)
    assert lost(model, AS_GIVEN, parted_elsewhere) == 0
    assert lost(model, LAST, parted_elsewhere) > max(lost(model, each) for each in (AS_GIVEN, LAST))


@pytest.mark.parametrize("operator", [LINEAR, NEAREST])
def test_openvino_resizes_channels_first(operator: str) -> None:
    region = next(iter(regions_of(load(model_of(operator)).ir)))
    view = region.view(next(iter(region.graph)))
    rule = OPENVINO.rule_of(view)
    assert isinstance(rule.transport(view, LAST), Refusal)
    for order in (AS_GIVEN, Permutation.of(1, 0, 2, 3), Permutation.of(0, 1, 3, 2)):
        assert not isinstance(rule.transport(view, order), Refusal)


@pytest.mark.parametrize(
    ("mode", "target", "left"),
    [
        *(("linear", "ort", 0), ("linear", "openvino", 2), ("nearest", "openvino", 2)),
        ("linear", "onnx", 2),
    ],
)
def test_orders_of_images_are_chosen_by_time(mode: str, target: str, left: int) -> None:
    result = relayout.optimize(parse(ENTERING.format(mode=mode)), target=target)
    assert result.accepted
    assert result.after.transposes == left


def test_fewer_transposes_may_be_asked_for() -> None:
    result = relayout.optimize(parse(ENTERING.format(mode="linear")), minimize="count")
    assert result.after.transposes == 0
