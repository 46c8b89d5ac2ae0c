"""Attentions written as products and a Softmax give what the fused operator gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.lower.registry import SPELT_OUT  # noqa: E402
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.program import Program, ProgramStep  # noqa: E402
from relayout.backends.torch.providers.inductor import SpeltAttention  # noqa: E402
from relayout.backends.torch.runtime.attention import (  # noqa: E402
    weighted_values,
    with_hidden_keys,
)
from tests.ops import law  # noqa: E402

HEAD = '<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>'
MODELS = {
    "biased": """
g (float[2,7,8] q, float[2,5,8] k, float[2,5,8] v, float[1,2,7,5] m) => (float[2,7,8] y)
{ y = com.microsoft.MultiHeadAttention<num_heads=2, scale=0.3>(q, k, v, , , m) }""",
    "plain": """
g (float[2,7,8] q, float[2,5,8] k, float[2,5,8] v) => (float[2,7,8] y)
{ y = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v) }""",
    "standard": """
g (float[2,7,8] q, float[2,5,4] k, float[2,5,4] v, float[7,5] m) => (float[2,7,8] y)
{ y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v, m) }""",
}


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
def test_spelt_out_gives_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    drawn = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        value.name: drawn.standard_normal(
            [dim.dim_value for dim in value.type.tensor_type.shape.dim], np.float32
        )
        for value in model.graph.input
    }
    (wanted,) = law.run(model, feeds, "ort")
    program = program_of(model)
    (node,) = program.model.graph
    lowering = SPELT_OUT[node.domain, node.op_type]
    step = ProgramStep((node,), SpeltAttention(lowering))
    source = write_source(Program(program.model, (step,)))
    assert "spelt=True" in source.text
    assert "dynamic=False" in source.text
    (got,) = loaded(source, "cpu")(feeds).values()
    law.compare("y", wanted, got, 2e-6)


@pytest.mark.parametrize("shape", [None, (7, 5), (2, 1, 7, 1), (2, 4, 7, 5)])
def test_hidden_keys_change_nothing(shape: tuple[int, ...] | None) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 7, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)
    bias = None if shape is None else torch.randn(shape)
    wanted = weighted_values(q, k, v, bias, 0.3)
    k, v, padded = with_hidden_keys(k, v, bias, 3)
    assert k.shape[2] == v.shape[2] == padded.shape[-1] == 8
    torch.testing.assert_close(weighted_values(q, k, v, padded, 0.3), wanted)
