"""A target: an imagined NPU, described by what it can run."""

from __future__ import annotations

from relayout import Target
from relayout.ops.rule import barrier
from relayout.targets import nhwc
from relayout.targets.channels_last import OHWI

EXAMPLE_NPU = Target(
    "example-npu",
    rules={
        **nhwc.rules(OHWI),
        ("", "Softmax"): barrier("the NPU runs Softmax only as it is given"),
    },
    weights=OHWI,
    summary="an imagined NPU: kernels channels last with weights as OHWI",
)
