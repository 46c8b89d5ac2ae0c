"""What one kernel can do, and what it cannot, each with its reason."""

from __future__ import annotations

import pytest

from relayout.fusion.groups import Limits
from tests.fusion.grouping import grouped, groups
from tests.fusion.tables import CONV, IMAGE, weight, weights

ROW_AXIS = "int64[1] a = {1}"


def _refused(text: str) -> dict[tuple[str, str], str]:
    """The code for each pair of operators that were kept apart, by the names of their results."""
    return {
        (refusal.producer.outputs[0].name or "", refusal.consumer.outputs[0].name or ""): str(
            refusal.code
        )
        for refusal in grouped(text, "relayout").refusals
        if refusal.consumer is not None
    }


def test_a_row_is_not_spread_over_another_axis() -> None:
    """Without kept axes the sums of the rows are subtracted from the columns."""
    text = f"""g (float[64,64] x) => (float[64,64] y) <{ROW_AXIS}>
    {{ m = ReduceSum<keepdims = 0>(x, a) y = Sub(x, m) }}"""
    assert groups(grouped(text, "relayout")) == ["m", "y"]
    assert _refused(text) == {("m", "y"): "between"}


def test_a_row_may_be_reshaped_and_spread() -> None:
    text = f"""g (float[64,64] x) => (float[64,64] y) <{ROW_AXIS}>
    {{ m = ReduceSum<keepdims = 0>(x, a) u = Unsqueeze(m, a) y = Sub(x, u) }}"""
    assert groups(grouped(text, "relayout")) == ["m u y"]


def test_rows_that_do_not_fit_are_not_kept() -> None:
    text = f"""g (float[2,65536] x) => (float[2,65536] y) <{ROW_AXIS}>
    {{ m = ReduceSum(x, a) y = Sub(x, m) }}"""
    assert groups(grouped(text, "relayout")) == ["m", "y"]
    assert _refused(text) == {("m", "y"): "row"}


def test_rows_along_other_axes_are_another_kernel() -> None:
    text = f"""g (float[64,64] x) => (float[64,1] y, float[1,64] z)
    <{ROW_AXIS}, int64[1] b = {{0}}>
    {{ e = Exp(x) y = ReduceSum(e, a) z = ReduceSum(e, b) }}"""
    found = groups(grouped(text, "relayout"))
    assert len(found) == 2
    assert "row" in _refused(text).values()


def test_a_product_is_not_added_to_itself_moved() -> None:
    text = f"""g (float[8,8] x) => (float[8,8] y) <{weight("w", 8, 8)}>
    {{ m = MatMul(x, w) t = Transpose(m) y = Add(m, t) }}"""
    found = groups(grouped(text, "relayout"))
    assert "m t y" not in found
    assert len(found) == 2


def test_a_product_takes_what_is_added_to_it_moved() -> None:
    text = f"""g (float[8,8] x, float[8,8] r) => (float[8,8] y) <{weight("w", 8, 8)}>
    {{ m = MatMul(x, w) t = Transpose(m) y = Add(t, r) }}"""
    assert groups(grouped(text, "relayout")) == ["m t y"]


def test_costly_work_does_not_precede_a_product() -> None:
    text = f"""g ({IMAGE} x) => ({IMAGE} y) <{weights("w")}> {{ e = Exp(x) y = {CONV}(e, w) }}"""
    assert _refused(text) == {("e", "y"): "complex_prologue"}


def test_what_precedes_a_product_is_not_also_a_result() -> None:
    text = f"""g ({IMAGE} x) => ({IMAGE} r, {IMAGE} y) <{weights("w")}>
    {{ r = Relu(x) y = {CONV}(r, w) }}"""
    assert _refused(text) == {("r", "y"): "results"}


def test_a_pad_with_other_values_stays_before_a_convolution() -> None:
    text = f"""g ({IMAGE} x) => ({IMAGE} y)
    <{weights("w")}, int64[8] p = {{0,0,1,1,0,0,1,1}}, float v = {{1.0}}>
    {{ r = Pad(x, p, v) y = Conv(r, w) }}"""
    assert _refused(text) == {("r", "y"): "complex_prologue"}


def test_convolutions_of_other_windows_are_not_siblings() -> None:
    text = f"""g ({IMAGE} x) => ({IMAGE} a, {IMAGE} b)
    <{weights("w")}, {weight("v", 8, 8, 1, 1)}> {{ a = {CONV}(x, w) b = Conv(x, v) }}"""
    assert groups(grouped(text, "relayout")) == ["a", "b"]


def test_siblings_are_not_added_to_each_other() -> None:
    text = f"""g ({IMAGE} x) => ({IMAGE} y) <{weights("w", "v")}>
    {{ a = {CONV}(x, w) b = {CONV}(x, v) y = Add(a, b) }}"""
    assert len(groups(grouped(text, "relayout"))) == 2


def test_a_concat_along_another_axis_does_not_join_siblings() -> None:
    text = f"""g ({IMAGE} x) => (float[1,8,32,16] y) <{weights("w", "v")}>
    {{ a = {CONV}(x, w) b = {CONV}(x, v) y = Concat<axis = 2>(a, b) }}"""
    assert groups(grouped(text, "relayout")) == ["a b", "y"]


def test_groups_that_read_one_tensor_are_merged() -> None:
    text = """g (float[4,64] x) => (float[4,64] a, float[4,64] b) { a = Exp(x) b = Neg(x) }"""
    assert groups(grouped(text, "tvm")) == ["a", "b"]
    assert groups(grouped(text, "relayout")) == ["a b"]


def test_a_cheap_operator_is_repeated_where_it_is_read() -> None:
    text = f"""g (float16[1,8,16,16] x) => ({IMAGE} a, float[1,8,14,14] b) <{weights("w", "v")}>
    {{ r = Cast<to = 1>(x) a = {CONV}(r, w) b = Conv(r, v) }}"""
    found = grouped(text, "relayout")
    assert groups(found) == ["r a", "r b"]
    assert [[node.op_type for node in group.duplicates] for group in found.groups] == [[], ["Cast"]]


def test_a_costly_operator_is_not_repeated() -> None:
    text = """g (float[4,64] x) => (float[4,1] a, float[1,64] b)
    <int64[1] i = {1}, int64[1] j = {0}>
    { e = Exp(x) a = ReduceSum(e, i) b = ReduceSum(e, j) }"""
    assert all(not group.duplicates for group in grouped(text, "relayout").groups)


def test_random_numbers_are_never_repeated() -> None:
    text = """g (float[4,64] x) => (float[4,64] a, float[64,4] b)
    { r = RandomNormalLike(x) a = Relu(r) t = Transpose(r) b = Exp(t) }"""
    found = grouped(text, "relayout")
    assert sum(node.op_type == "RandomNormalLike" for g in found.groups for node in g.nodes) == 1
    assert all(len(g.nodes) == 1 for g in found.groups if g.nodes[0].op_type == "RandomNormalLike")


WIDE = """g (float[4096,1] x, float[4096,{n}] z) => (float[4096,{n}] y)
{{ a = Exp(x) b = Exp(a) y = Add(b, z) }}"""


def test_costly_work_is_not_repeated_across_a_broadcast() -> None:
    """The chain stays one group, cut exactly at the broadcast."""
    text = WIDE.format(n=4096)
    assert groups(grouped(text, "tvm")) == ["a b y"]
    assert groups(grouped(text, "relayout")) == ["a b", "y"]
    assert _refused(text) == {("b", "y"): "repeat"}


def test_little_work_is_repeated_rather_than_written() -> None:
    assert groups(grouped(WIDE.format(n=2), "relayout")) == ["a b y"]


def test_a_small_result_does_not_grow_after_a_product() -> None:
    text = f"""g (float[1,8,1,1] s, {IMAGE} x) => ({IMAGE} y) <{weight("w", 8, 8, 1, 1)}>
    {{ a = Conv(s, w) y = Add(a, x) }}"""
    assert _refused(text) == {("a", "y"): "between"}


def test_what_lies_between_two_clusters_keeps_them_apart() -> None:
    text = "g (float[64] x) => (float[64] y) { a = Exp(x) s = CumSum(a, i) y = Add(a, s) }"
    text = text.replace("y) {", "y) <int64 i = {0}> {")
    assert groups(grouped(text, "relayout")) == ["a", "s", "y"]
    assert _refused(text) == {("a", "s"): "opaque", ("a", "y"): "cycle", ("s", "y"): "opaque"}


def test_a_cheap_operator_leaves_its_producer_for_its_reader() -> None:
    text = f"""g ({IMAGE} x) => ({IMAGE} y) <{weights("w", "v")}>
    {{ a = {CONV}(x, w) r = Relu(a) b = {CONV}(r, v) y = Add(a, b) }}"""
    assert groups(grouped(text, "relayout")) == ["a", "r b y"]


@pytest.mark.parametrize("mode", ["tvm", "relayout"])
def test_an_opaque_operator_has_a_reason(mode: str) -> None:
    text = (
        """g (float[4,64] x) => (float[4,64] y) { a = Exp(x) b = my.domain.Thing(a) y = Exp(b) }"""
    )
    header = '<ir_version: 10, opset_import: ["" : 21, "my.domain" : 1]>\n'
    found = grouped(header + text, "tvm" if mode == "tvm" else "relayout")
    assert {refusal.code for refusal in found.refusals} == {"unknown_op"}
    assert {refusal.reason for refusal in found.refusals} == {
        "nothing is known about operator my.domain.Thing"
    }


def test_arguments_are_limited() -> None:
    text = """g (float[4] a, float[4] b, float[4] c, float[4] d) => (float[4] z)
    { e = Add(a, b) f = Add(c, d) y = Softmax(e) z = Add(y, f) }"""
    assert groups(grouped(text, "relayout")) == ["e f y z"]
    assert len(groups(grouped(text, "relayout", Limits(max_args=3)))) > 1
