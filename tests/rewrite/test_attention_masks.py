"""Constant masks of attentions that hide nothing, or what comes later; products that are joined."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from relayout.rewrite.attention_masks import DropIdleMask, RaiseCausal
from relayout.rewrite.joined_products import JoinProducts
from relayout.rewrite.worklist import rewrite_model
from tests.rewrite.in_runtime import assert_same
from tests.rewrite.rewriting import parse, to_ir

LENGTH, WIDTH = 4, 6
SQUARE = np.tri(LENGTH, dtype=np.bool_)
LEAST = np.finfo(np.float32).min
STANDARD = "y = Attention<q_num_heads=2, kv_num_heads=2>(q, k, v, m)"
CONTRIB = "y = com.microsoft.MultiHeadAttention<num_heads=2>(q, k, v, , , m)"


def attention(call: str, mask: np.ndarray, keys: int = LENGTH, extra: str = "") -> onnx.ModelProto:
    text = f"""g (float[2,{LENGTH},{WIDTH}] q, float[2,{keys},{WIDTH}] k,
        float[2,{keys},{WIDTH}] v{extra}) => (float[2,{LENGTH},{WIDTH}] y) {{ {call} }}"""
    model = parse(text, 23)
    model.graph.initializer.append(onnx.numpy_helper.from_array(mask, "m"))
    return model


def simplified(model: onnx.ModelProto) -> onnx.ModelProto:
    made = to_ir(model)
    rewrite_model(made, [DropIdleMask(), RaiseCausal()])
    return ir.to_proto(made)


def as_numbers(shown: np.ndarray) -> np.ndarray:
    return np.where(shown, 0.0, -np.inf).astype(np.float32)


@pytest.mark.parametrize(
    ("call", "mask"),
    [
        (STANDARD, np.zeros((LENGTH, LENGTH), np.float32)),
        (STANDARD, np.ones((2, 1, LENGTH, LENGTH), np.bool_)),
        (CONTRIB, np.zeros((1, 1, LENGTH, LENGTH), np.float32)),
        (CONTRIB, np.zeros((2, 2, LENGTH, LENGTH), np.float32)),
    ],
)
def test_a_mask_that_hides_nothing_goes(call: str, mask: np.ndarray) -> None:
    given = attention(call, mask)
    result = simplified(given)
    assert "m" not in result.graph.node[0].input
    assert not result.graph.node[0].attribute[-1].name.endswith("causal")
    assert_same(given, result)


@pytest.mark.parametrize(
    ("call", "mask", "name"),
    [
        (STANDARD, as_numbers(SQUARE), "is_causal"),
        (CONTRIB, np.maximum(as_numbers(SQUARE), LEAST)[None, None], "unidirectional"),
        (STANDARD, np.broadcast_to(SQUARE, (2, 1, LENGTH, LENGTH)), "is_causal"),
        (CONTRIB, as_numbers(SQUARE)[None, None], "unidirectional"),
        (CONTRIB, np.tile(as_numbers(SQUARE), (2, 1, 1, 1)), "unidirectional"),
    ],
)
def test_a_mask_of_what_comes_later_is_an_attribute(call: str, mask: np.ndarray, name: str) -> None:
    given = attention(call, mask)
    result = simplified(given)
    (node,) = result.graph.node
    assert "m" not in node.input
    assert {attribute.name: attribute.i for attribute in node.attribute}[name] == 1
    assert_same(given, result)


@pytest.mark.parametrize(("shown", "count"), [(SQUARE, 1), (SQUARE.T, 0)])
def test_a_mask_that_is_chosen_by_a_constant(shown: np.ndarray, count: int) -> None:
    call = f"""zero = Constant<value_float = 0.0>() never = Constant<value_float = -inf>()
        c = Where(m, zero, never) {CONTRIB.replace("m)", "c)")}"""
    given = attention(call, shown[None, None])
    result = simplified(given)
    names = [attribute.name for node in result.graph.node for attribute in node.attribute]
    assert names.count("unidirectional") == count
    assert_same(given, result)


def test_a_condition_that_is_repeated() -> None:
    shape = f"s = Constant<value_ints = [2, 1, {LENGTH}, {LENGTH}]>()"
    call = f"""{shape} zero = Constant<value_float = 0.0>()
        never = Constant<value_float = -inf>() e = Expand(m, s) b = Cast<to = 9>(e)
        c = Where(b, zero, never) {CONTRIB.replace("m)", "c)")}"""
    given = attention(call, np.ones((2, 1, 1, LENGTH), np.int64))
    result = simplified(given)
    assert "c" not in result.graph.node[-1].input
    assert_same(given, result)


UPSIDE_DOWN = as_numbers(SQUARE.T)
ONE_MORE = np.concatenate([as_numbers(SQUARE)[None], np.zeros((1, LENGTH, LENGTH), np.float32)])
KEPT = {
    "what comes earlier": (UPSIDE_DOWN[None, None], LENGTH),
    "one head of two": (ONE_MORE[None], LENGTH),
    "numbers": (np.full((1, 1, LENGTH, LENGTH), 0.5, np.float32), LENGTH),
    "large numbers": (np.where(SQUARE, 0, -1e4).astype(np.float32)[None, None], LENGTH),
    "more keys": (as_numbers(np.tri(LENGTH, 5, 1, dtype=np.bool_))[None, None], 5),
    "a key for all": (as_numbers(SQUARE[:, :1])[None, None], LENGTH),
}


@pytest.mark.parametrize(("mask", "keys"), KEPT.values(), ids=KEPT)
def test_other_masks_stay(mask: np.ndarray, keys: int) -> None:
    result = simplified(attention(CONTRIB, mask, keys))
    assert "m" in result.graph.node[0].input


def test_a_mask_over_a_past_stays() -> None:
    past = ", float[2,2,3,3] pk, float[2,2,3,3] pv"
    call = STANDARD.replace("v, m", "v, m, pk, pv")
    given = attention(call, np.zeros((LENGTH, LENGTH + 3), np.float32), extra=past)
    assert "m" in simplified(given).graph.node[0].input


PRODUCTS = """
g (float[2,4,6] x) => (float[2,4,6] y{more})
{{ q = MatMul(x, u){first}
   k = MatMul(x, v)
   z = MatMul(x, w)
   zb = Add(c, z)
   y = com.microsoft.MultiHeadAttention<num_heads=2>({query}, k, zb){end} }}
"""


def joined(text: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    given, drawn = parse(text), np.random.default_rng(1)
    shapes = {"u": (6, 6), "v": (6, 6), "w": (6, 6), "b": (6,), "c": (6,)}
    given.graph.initializer.extend(
        onnx.numpy_helper.from_array(drawn.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    )
    made = to_ir(given)
    rewrite_model(made, [JoinProducts()])
    return given, ir.to_proto(made)


def products(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "MatMul" for node in model.graph.node)


def test_products_that_an_attention_reads_become_one() -> None:
    text = PRODUCTS.format(more="", first=" qb = Add(q, b)", query="qb", end="")
    given, result = joined(text)
    assert products(result) == 1
    assert [node.op_type for node in result.graph.node].count("Add") == 1
    onnx.checker.check_model(result, full_check=True)
    assert_same(given, result)


def test_a_product_that_is_changed_further_is_left() -> None:
    text = PRODUCTS.format(more="", first=" qb = Relu(q)", query="qb", end="")
    given, result = joined(text)
    assert products(result) == 2
    assert_same(given, result)


def test_a_product_that_is_a_result_is_left() -> None:
    text = PRODUCTS.format(more=", float[2,4,6] q", first="", query="q", end="")
    _, result = joined(text)
    assert products(result) == 2
    assert [value.name for value in result.graph.output] == ["y", "q"]
