"""The operators that the document of automatic NHWC lists, as ONNX states them."""

from __future__ import annotations

import pytest

from tests.assign.writing import left_by

IMAGE = "float[2,4,6,5]"
WEIGHT = ", ".join(map(str, range(16)))
COUNTERPARTS = {
    "conv2d": "b = Conv(a, w)",
    "bias_add": "b = Add(a, per_channel)",
    "broadcast_add": "b = Add(a, a)",
    "normalization": "b = BatchNormalization(a, s, s, s, s)",
    "max_pool_2d": "b = MaxPool<kernel_shape = [1, 1]>(a)",
    "relu": "b = Relu(a)",
    "scalar_div": "b = Div(a, scalar)",
    "silu": "g = Sigmoid(a) b = Mul(a, g)",
    "cast": "d = Cast<to = 11>(a) b = Cast<to = 1>(d)",
    "add_n2": "b = Sum(a, a)",
    "cat": "p, q = Split<axis = 1, num_outputs = 2>(a) b = Concat<axis = 1>(q, p)",
    "group_norm": "b = GroupNormalization<num_groups = 2>(a, s, s)",
}


@pytest.mark.parametrize("body", COUNTERPARTS.values(), ids=COUNTERPARTS)
@pytest.mark.parametrize("strategy", ["auto-nhwc", "exact"])
def test_it_runs_channels_last_between_two_convolutions(strategy: str, body: str) -> None:
    text = f"""counterpart ({IMAGE} x) => ({IMAGE} y)
    <float[4,4,1,1] w = {{{WEIGHT}}}, float[4] s = {{1, 2, 3, 4}},
     float[4,1,1] per_channel = {{1, 2, 3, 4}}, float scalar = {{3.0}}> {{
        a = Conv(x, w)
        {body}
        y = Conv(b, w)
    }}"""
    assert left_by(text, strategy) == [2]
