"""Every operator of onnx has an answer to what may share its kernel."""

from __future__ import annotations

import onnx.defs
import onnx_ir as ir
import pytest

from relayout.graph.read import NodeView
from relayout.ops.fusing import KINDS, PARAMETERS, SHAPING, fuses_as, standard_name
from relayout.ops.kind import Kind

OPERATORS = sorted(
    {
        f"{schema.domain}.{schema.name}".lstrip(".")
        for schema in onnx.defs.get_all_schemas_with_history()
    }
)


def test_every_operator_has_a_kind() -> None:
    assert sorted(set(OPERATORS) - set(KINDS)) == []


def test_every_kind_is_that_of_an_operator_that_exists() -> None:
    assert sorted(set(KINDS) - set(OPERATORS)) == ["com.microsoft.FusedMatMul"]
    assert sorted((set(PARAMETERS) | set(SHAPING)) - set(KINDS)) == []


def test_an_unknown_operator_is_opaque_and_says_so() -> None:
    answer = fuses_as(NodeView(ir.Node("my.domain", "Thing", []), 1))
    assert (answer.kind, answer.opaque_for) == (Kind.OPAQUE, "unknown_op")


@pytest.mark.parametrize(
    ("domain", "op_type", "name"),
    [
        ("relayout", "Conv2d_B", "Conv"),
        ("relayout", "GlobalAveragePool2d", "GlobalAveragePool"),
        ("relayout", "other", None),
        ("ai.onnx", "Relu", "Relu"),
        ("ai.onnx.ml", "Scaler", "ai.onnx.ml.Scaler"),
    ],
)
def test_a_kernel_of_another_layout_is_its_operator(
    domain: str, op_type: str, name: str | None
) -> None:
    assert standard_name(ir.Node(domain, op_type, [])) == name
