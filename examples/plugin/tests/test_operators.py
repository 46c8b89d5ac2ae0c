"""Operators of the plugin take part in the choice of layouts."""

from __future__ import annotations

import onnx
import pytest
from conftest import BETWEEN_TRANSPOSES, GELU, model_of

import relayout

SCALED = """
g (float[1,4,5,3] x, float[3] s) => (float[1,4,5,3] y) {
    a = Transpose<perm=[0,3,1,2]>(x)
    b = com.example.ScaleAxis<axis=1>(a, s)
    y = Transpose<perm=[0,2,3,1]>(b)
}
"""


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_an_operator_like_gelu_loses_its_transposes_and_computes_the_same() -> None:
    result = relayout.optimize(model_of(BETWEEN_TRANSPOSES, GELU))
    assert operators(result.model) == ["MyGelu"]
    assert result.record().verified


def test_an_operator_with_facts_of_its_own_has_its_axis_moved() -> None:
    result = relayout.optimize(model_of(SCALED), verify=False)
    assert operators(result.model) == ["ScaleAxis"]
    (node,) = result.model.graph.node
    assert list(node.input) == ["x", "s"]
    assert onnx.helper.get_node_attr_value(node, "axis") == 3


@pytest.mark.parametrize("graph", [BETWEEN_TRANSPOSES, SCALED])
def test_an_operator_of_that_domain_that_nobody_declared_is_a_barrier(graph: str) -> None:
    unheard = graph.replace("MyGelu", "Unheard").replace("ScaleAxis", "Unheard")
    assert relayout.optimize(model_of(unheard), verify=False).after.transposes == 2
