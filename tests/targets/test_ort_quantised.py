"""Operators on bytes channels last in ONNX Runtime, with its own optimiser off."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from relayout.api import Result, optimize
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.targets.ort_quantised import CONTRIB_DOMAIN, last_of
from relayout.targets.target import ORT
from tests.ops import law
from tests.samples.sample import Array, Sample

SCALE, ZERO = np.asarray(0.1, np.float32), np.asarray(3, np.uint8)
SHAPES = {3: (2, 4, 7), 4: (2, 4, 7, 5), 5: (2, 4, 5, 3, 6)}


def data(*shape: int, dtype: Any = np.uint8) -> Array:
    limits = (0, 200) if dtype == np.uint8 else (-99, 99)
    return np.random.default_rng(len(shape)).integers(*limits, shape).astype(dtype)


def own(op_type: str, inputs: list[Array | None], **attributes: Any) -> Sample:
    everything = frozenset(i for i, x in enumerate(inputs) if x is not None and x.ndim == 0)
    return Sample(
        op_type, 1, inputs, attributes, everything, domain=CONTRIB_DOMAIN, admits=1, runtime="ort"
    )


def convolutions(rank: int) -> list[Sample]:
    kernel = data(6, 2, *(3,) * (rank - 2), dtype=np.int8)
    large = np.asarray(9.0, np.float32)
    weight: list[Array | None] = [kernel, SCALE, np.asarray(0, np.int8), large, ZERO]
    named = {"pads": [1] * 2 * (rank - 2), "strides": [2, 1, 1][: rank - 2], "group": 2}
    first: list[Array | None] = [data(*SHAPES[rank]), SCALE, ZERO, *weight]
    last: list[Array | None] = [_last(data(*SHAPES[rank])), SCALE, ZERO, *weight]
    constants = frozenset(range(1, 8))
    return [
        Sample("QLinearConv", 10, first, named, constants, admits=1, runtime="ort"),
        Sample(
            *("QLinearConv", 1, last, {**named, "channels_last": 1}, constants),
            domain=CONTRIB_DOMAIN,
            admits=1,
            runtime="ort",
        ),
    ]


def pools(rank: int, dtype: Any) -> list[Sample]:
    x, spatial = data(*SHAPES[rank], dtype=dtype), rank - 2
    named = {"kernel_shape": [2] * spatial, "strides": [2] * spatial, "pads": [0, 1] * spatial}
    return [
        Sample("MaxPool", 12, [x], named, admits=1, runtime="ort"),
        own("NhwcMaxPool", [_last(x)], **named),
    ]


def _last(x: Array) -> Array:
    return np.ascontiguousarray(x.transpose(last_of(x.ndim).axes))


IMAGE = data(*SHAPES[4])
QUANTISED: list[Array | None] = [IMAGE, SCALE, ZERO]
RESULT: list[Array | None] = [SCALE, ZERO]
SAMPLES = [
    *(sample for rank in SHAPES for sample in convolutions(rank)),
    *(sample for rank in SHAPES for dtype in (np.uint8, np.int8) for sample in pools(rank, dtype)),
    own("QLinearGlobalAveragePool", [*QUANTISED, *RESULT], channels_last=0),
    own("QLinearAveragePool", [*QUANTISED, *RESULT], kernel_shape=[2, 2], channels_last=1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_the_law(sample: Sample) -> None:
    view = law.view_of(sample)
    lead = sample.inputs[ORT.rule_of(view).lead(view)]
    assert lead is not None
    others = [order for order in law.orders(lead.ndim) if not order.is_identity]
    answers = [law.check(sample, order, ORT) for order in others]
    admitted = [answer for answer in answers if isinstance(answer, Transport)]
    assert len(admitted) >= (sample.admits or 0)


def test_floats_have_no_kernel_channels_last() -> None:
    sample = Sample("MaxPool", 12, [np.ones((2, 4, 7, 5), np.float32)], {"kernel_shape": [2, 2]})
    answer = law.check(sample, Permutation.of(0, 2, 3, 1), ORT)
    assert isinstance(answer, Refusal)


def network(*, last: bool = False) -> onnx.ModelProto:
    """A quantised network whose images come in the order that its kernels do not have."""
    weight = data(4, 4, 3, 3, dtype=np.int8)
    constants: dict[str, Array] = {"s": SCALE, "z": ZERO, "w": weight, "v": np.asarray(0, np.int8)}
    constants["large"] = np.asarray(9.0, np.float32)
    pads, shapes = [1, 1, 1, 1], {"b": (2, 4, 8, 6), "c": (2, 4, 4, 3), "d": (2, 4, 4, 3)}
    to, back, ends = [0, 3, 1, 2], [0, 2, 3, 1], ([2, 8, 6, 4], [2, 4, 3, 4])
    domain, named, pool = "", dict[str, int](), "MaxPool"
    if last:
        to, back, ends = back, to, ([2, 4, 8, 6], [2, 4, 4, 3])
        domain, named, pool = CONTRIB_DOMAIN, {"channels_last": 1}, "NhwcMaxPool"
        shapes = {name: (n, h, w, c) for name, (n, c, h, w) in shapes.items()}

    def conv(x: str, y: str) -> onnx.NodeProto:
        operands = [x, "s", "z", "w", "s", "v", "large", "z"]
        node = helper.make_node("QLinearConv", operands, [y], domain=domain, pads=pads)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in named.items())
        return node

    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=to),
        conv("a", "b"),
        helper.make_node(pool, ["b"], ["c"], domain=domain, kernel_shape=[2, 2], strides=[2, 2]),
        conv("c", "d"),
        helper.make_node("Transpose", ["d"], ["y"], perm=back),
    ]
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, ends[0])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, ends[1])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
        value_info=[
            helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, shape)
            for name, shape in shapes.items()
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB_DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def kinds(result: Result) -> Counter[tuple[str, str]]:
    return Counter((node.domain, node.op_type) for node in result.model.graph.node)


def test_a_quantised_network_needs_no_transpose() -> None:
    result = optimize(network(), target="ort")
    assert result.verdict is not None
    assert result.verdict.equal
    assert (result.before.transposes, result.after.transposes) == (2, 0)
    assert kinds(result) == {
        (CONTRIB_DOMAIN, "QLinearConv"): 2,
        (CONTRIB_DOMAIN, "NhwcMaxPool"): 1,
    }


def test_nothing_of_it_is_written_for_other_runtimes() -> None:
    assert not optimize(network(), target="onnx").changed


def test_the_way_back() -> None:
    """Channels first at both ends, so that the forms channels last would cost two Transposes."""
    result = optimize(network(last=True), target="ort")
    assert result.verdict is not None
    assert result.verdict.equal
    assert (result.before.transposes, result.after.transposes) == (2, 0)
    assert kinds(result) == {
        ("", "QLinearConv"): 2,
        ("", "MaxPool"): 1,
    }
