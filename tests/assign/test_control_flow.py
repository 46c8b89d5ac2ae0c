"""Orders cross the borders of If, and captured tensors are transposed where it costs least."""

from __future__ import annotations

import onnx

from relayout.ops.measure import Objective
from tests.assign.crossing import BACK, NCHW, NHWC, OUT, assert_left, by_each_objective


@by_each_objective
def test_both_branches_end_in_another_order(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} x, bool c) => ({NHWC} y) {{
            r = If (c) <
                then_branch = one () => ({NCHW} p) {{ a = Relu(x)  p = {OUT}(a) }},
                else_branch = two () => ({NCHW} q) {{ b = Abs(x)  q = {OUT}(b) }}
            >
            y = {BACK}(r)
        }}""",
        outside=0,
        objective=objective,
    )


@by_each_objective
def test_a_branch_without_the_transpose_pays_for_it(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} x, {NCHW} z, bool c) => ({NHWC} y) {{
            r = If (c) <
                then_branch = one () => ({NCHW} p) {{ a = Relu(x)  p = {OUT}(a) }},
                else_branch = two () => ({NCHW} q) {{ q = Abs(z) }}
            >
            y = {BACK}(r)
        }}""",
        outside=0,
        inside=1,
        objective=objective,
    )


def test_a_captured_tensor_is_transposed_once_for_both_branches() -> None:
    assert_left(
        f"""g ({NHWC} x, float[7,7] m, float[7,7] w, bool c) => ({NCHW} z) {{
            z = If (c) <
                then_branch = one () => ({NCHW} p) {{ t = {OUT}(x)  p = MatMul(t, m) }},
                else_branch = two () => ({NCHW} q) {{ s = {OUT}(x)  q = MatMul(s, w) }}
            >
        }}""",
        outside=1,
    )


def test_a_copy_that_one_branch_needs_stays_in_it() -> None:
    """Around the branches it would run in vain."""
    assert_left(
        f"""g ({NHWC} x, {NCHW} y, float[7,7] m, bool c) => ({NCHW} z) {{
            z = If (c) <
                then_branch = one () => ({NCHW} p) {{ t = {OUT}(x)  p = MatMul(t, m) }},
                else_branch = two () => ({NCHW} q) {{ q = Abs(y) }}
            >
        }}""",
        outside=0,
        inside=1,
    )


@by_each_objective
def test_a_transpose_outside_is_undone_inside(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} x, bool c) => ({NHWC} y) {{
            t = {OUT}(x)
            y = If (c) <
                then_branch = one () => ({NHWC} p) {{ a = Relu(t)  p = {BACK}(a) }},
                else_branch = two () => ({NHWC} q) {{ b = Abs(t)  q = {BACK}(b) }}
            >
        }}""",
        outside=0,
        objective=objective,
    )


@by_each_objective
def test_a_branch_gives_back_what_lies_outside(objective: Objective) -> None:
    """Without its Transpose a branch has no node left, and needs one."""
    assert_left(
        f"""g ({NHWC} x, bool c) => ({NHWC} y) {{
            r = If (c) <
                then_branch = one () => ({NCHW} p) {{ p = {OUT}(x) }},
                else_branch = two () => ({NCHW} q) {{ b = Abs(x)  q = {OUT}(b) }}
            >
            y = {BACK}(r)
        }}""",
        outside=0,
        objective=objective,
    )


@by_each_objective
def test_a_constant_in_a_branch_follows(objective: Objective) -> None:
    values = ",".join(map(str, range(210)))
    assert_left(
        f"""g ({NHWC} x, bool c) => ({NHWC} y) {{
            r = If (c) <
                then_branch = one () => ({NCHW} p) <{NCHW} p = {{{values}}}> {{}},
                else_branch = two () => ({NCHW} q) {{ b = Abs(x)  q = {OUT}(b) }}
            >
            y = {BACK}(r)
        }}""",
        outside=0,
        objective=objective,
    )


def test_branches_of_different_rank_keep_their_order() -> None:
    assert_left(
        f"""g ({NHWC} x, {NCHW} y, bool c) => (float[k] z) {{
            r = If (c) <
                then_branch = one () => ({NCHW} p) {{ a = Relu(x)  p = {OUT}(a) }},
                else_branch = two () => (float[2,105] q) {{ q = Flatten(y) }}
            >
            s = Shape(r)
            z = Cast<to=1>(s)
        }}""",
        outside=0,
        inside=1,
    )


@by_each_objective
def test_names_that_two_branches_share(objective: Objective) -> None:
    result = assert_left(
        f"""g ({NHWC} x, bool c) => ({NHWC} y) {{
            r = If (c) <
                then_branch = one () => ({NCHW} p) {{ a = Relu(x)  b = {OUT}(a)  p = Abs(b) }},
                else_branch = two () => ({NCHW} p) {{ b = Abs(x)  a = {OUT}(b)  p = Relu(a) }}
            >
            y = {BACK}(r)
        }}""",
        outside=0,
        objective=objective,
    )
    onnx.checker.check_model(result, full_check=True)
