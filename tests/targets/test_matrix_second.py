"""Of forms of a product that move the same, torch gets the one with a constant second."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from relayout.assign.terms import Terms
from relayout.graph.io.load import load
from relayout.graph.read import constant_of, is_op
from relayout.optimizer.rounds import best_form
from relayout.targets.target import ONNX, TORCH, Target
from tests.rewrite.rewriting import parse

MODEL = """
g (float[2,6,5] x, float[4,3] u) => (float[2,5,6] y, float[4,3] v)
<float[6,6] w = {values}>
{{ z = MatMul(w, x)
   y = Transpose<perm=[0,2,1]>(z)
   t = Transpose<perm=[1,0]>(u)
   r = Relu(t)
   v = Transpose<perm=[1,0]>(r) }}
"""
VALUES = "{" + ", ".join(map(str, range(36))) + "}"


@pytest.mark.parametrize(("target", "place"), [(ONNX, 0), (TORCH, 1)])
def test_a_constant_comes_second_where_that_moves_as_much(target: Target, place: int) -> None:
    model = best_form(load(parse(MODEL.format(values=VALUES))), Terms(target=target)).ir
    (product,) = (node for node in model.graph if is_op(node, "MatMul"))
    assert constant_of(product.inputs[place]) is not None
    assert _transposes(model) == 1


def test_a_constant_stays_first_where_that_moves_less() -> None:
    text = MODEL.format(values=VALUES).replace("y = Transpose<perm=[0,2,1]>(z)", "y = Relu(z)")
    model = best_form(load(parse(text.replace("[2,5,6] y", "[2,6,5] y"))), Terms(target=TORCH)).ir
    (product,) = (node for node in model.graph if is_op(node, "MatMul"))
    assert constant_of(product.inputs[0]) is not None
    assert _transposes(model) == 0


def _transposes(model: ir.Model) -> int:
    return sum(is_op(node, "Transpose") for node in model.graph)
