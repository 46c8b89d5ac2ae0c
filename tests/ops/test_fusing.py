"""Every operator of onnx has an answer to what may share its kernel."""

from __future__ import annotations

import onnx.defs
import onnx_ir as ir
import pytest

from relayout.graph.read import NodeView
from relayout.ops.fusing import fuses_as
from relayout.ops.kind import Kind
from relayout.ops.registry import UNKNOWN, facts_in_any_layout, facts_named, names_of

OPERATORS = {
    f"{schema.domain}.{schema.name}".lstrip(".")
    for schema in onnx.defs.get_all_schemas_with_history()
}


def test_every_operator_has_a_kind() -> None:
    assert sorted(OPERATORS - set(names_of(lambda facts: facts.kernel is not None))) == []


def test_parameters_include_what_shapes_the_result() -> None:
    kernels = [facts_named(*_key(name)).kernel for name in OPERATORS]
    known = [kernel for kernel in kernels if kernel is not None and kernel.parameters]
    assert known
    assert all(set(kernel.shaping) <= set(kernel.parameters) for kernel in known)


def _key(name: str) -> tuple[str, str]:
    domain, _, op_type = name.rpartition(".")
    return domain, op_type


def test_an_unknown_operator_is_reported_as_opaque() -> None:
    answer = fuses_as(NodeView(ir.Node("my.domain", "Thing", []), 1))
    assert (answer.kind, answer.opaque_for) == (Kind.OPAQUE, "unknown_op")


@pytest.mark.parametrize(
    ("domain", "op_type", "operator"),
    [
        ("relayout", "Conv2d_B", ("", "Conv")),
        ("relayout", "GlobalAveragePool2d", ("", "GlobalAveragePool")),
        ("ai.onnx", "Relu", ("", "Relu")),
        ("ai.onnx.ml", "Scaler", ("ai.onnx.ml", "Scaler")),
    ],
)
def test_a_kernel_of_another_layout_is_its_operator(
    domain: str, op_type: str, operator: tuple[str, str]
) -> None:
    found = facts_in_any_layout(ir.Node(domain, op_type, []))
    assert found is facts_named(*operator)
    assert found is not UNKNOWN


def test_a_function_that_is_not_a_kernel_is_unknown() -> None:
    assert facts_in_any_layout(ir.Node("relayout", "other", [])) is UNKNOWN
