"""The target of the plugin, by name and as a value."""

from __future__ import annotations

from conftest import model_of
from relayout_example_plugin import EXAMPLE_NPU

import relayout
from relayout.cli.demo_model import network

SOFTMAX = """
g (float[1,4,5,3] x) => (float[1,4,5,3] y) {
    a = Transpose<perm=[0,3,1,2]>(x)
    b = Softmax<axis=1>(a)
    y = Transpose<perm=[0,2,3,1]>(b)
}
"""


def test_convolutions_run_channels_last() -> None:
    result = relayout.optimize(network(), target="example-npu")
    kernels = [node.op_type for node in result.model.graph.node if node.domain == "relayout"]
    assert kernels == ["Conv2d_B_OHWI", "MaxPool2d", "Conv2d_B_OHWI", "Conv2d_B_OHWI"]
    assert result.after.transposes == 0
    assert result.record().verified
    assert result.record().target == "example-npu"


def test_the_value_does_what_its_name_does() -> None:
    by_name, by_value = (
        relayout.optimize(network(), target=target, verify=False)
        for target in ("example-npu", EXAMPLE_NPU)
    )
    assert by_value.model == by_name.model
    assert by_value.after.transposes == 0


def test_what_it_cannot_run_stays_as_given() -> None:
    model = model_of(SOFTMAX)
    assert relayout.optimize(model, target="example-npu", verify=False).after.transposes == 2
    assert relayout.optimize(model, target="nhwc", verify=False).after.transposes == 0
