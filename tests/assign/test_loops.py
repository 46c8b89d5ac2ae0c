"""Orders cross the borders of Loop and Scan; nothing is transposed in a loop needlessly."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import relayout
from relayout.graph.io.load import load
from relayout.layout.permutation import Permutation
from relayout.ops.measure import NOMINAL_RUNS, Objective, measure
from tests.assign.crossing import (
    BACK,
    NCHW,
    NHWC,
    OUT,
    assert_left,
    assert_left_in_runtime,
    by_each_objective,
)
from tests.rewrite.rewriting import parse


@by_each_objective
def test_a_carried_value(objective: Objective) -> None:
    """What the body adds is transposed once, outside; the state is carried as it comes."""
    assert_left(
        f"""g ({NHWC} x, {NCHW} y, int64 n, bool c) => ({NHWC} z) {{
            z = Loop (n, c, x) <body = run (int64 i, bool go, {NHWC} v) => (bool on, {NHWC} w) {{
                on = Identity(go)
                t = {OUT}(v)
                s = Add(t, y)
                w = {BACK}(s)
            }}>
        }}""",
        outside=1,
        objective=objective,
    )


@by_each_objective
def test_a_value_carried_in_the_order_of_its_surroundings(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} x, int64 n, bool c) => ({NHWC} z) {{
            t = {OUT}(x)
            u = Loop (n, c, t) <body = run (int64 i, bool go, {NCHW} v) => (bool on, {NCHW} w) {{
                on = Identity(go)
                w = Mul(v, v)
            }}>
            z = {BACK}(u)
        }}""",
        outside=0,
        objective=objective,
    )


@by_each_objective
def test_a_captured_tensor_is_transposed_outside_of_the_loop(objective: Objective) -> None:
    result = assert_left(
        f"""g ({NHWC} x, {NCHW} y, float[7,7] m, int64 n, bool c) => ({NCHW} z) {{
            z = Loop (n, c, y) <body = run (int64 i, bool go, {NCHW} v) => (bool on, {NCHW} w) {{
                on = Identity(go)
                t = {OUT}(x)
                u = MatMul(t, m)
                w = Add(v, u)
            }}>
        }}""",
        outside=1,
        objective=objective,
    )
    assert result.graph.node[0].op_type == "Transpose"


@by_each_objective
def test_results_stacked_by_a_loop(objective: Objective) -> None:
    """A new first axis appears in front of any order of the others."""
    assert_left_in_runtime(
        f"""g ({NHWC} x, int64 n, bool c) => ({NHWC} last, float[k,2,5,7,3] all) {{
            last, s = Loop (n, c, x) <
                body = run (int64 i, bool go, {NHWC} v) => (bool on, {NHWC} w, {NCHW} u) {{
                    on = Identity(go)
                    w = Mul(v, v)
                    u = {OUT}(w)
                }}
            >
            all = Transpose<perm=[0,1,3,4,2]>(s)
        }}""",
        outside=0,
        objective=objective,
    )


def test_the_axis_of_stacked_results_stays_in_front() -> None:
    assert_left_in_runtime(
        f"""g ({NHWC} x, int64 n, bool c) => ({NHWC} last, float[2,k,5,7,3] all) {{
            last, s = Loop (n, c, x) <
                body = run (int64 i, bool go, {NHWC} v) => (bool on, {NHWC} w, {NHWC} u) {{
                    on = Identity(go)
                    w = Mul(v, v)
                    u = Abs(w)
                }}
            >
            all = Transpose<perm=[1,0,2,3,4]>(s)
        }}""",
        outside=1,
    )


@by_each_objective
def test_a_branch_in_a_loop(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} x, {NHWC} y, int64 n, bool c) => ({NHWC} z) {{
            z = Loop (n, c, x) <body = run (int64 i, bool go, {NHWC} v) => (bool on, {NHWC} w) {{
                on = Identity(go)
                t = {OUT}(v)
                s = If (c) <
                    then_branch = one () => ({NCHW} p) {{ u = {OUT}(y)  p = Add(t, u) }},
                    else_branch = two () => ({NCHW} q) {{ q = Abs(t) }}
                >
                w = {BACK}(s)
            }}>
        }}""",
        outside=0,
        objective=objective,
    )


def test_a_copy_in_a_branch_in_a_loop_is_made_outside_of_the_loop() -> None:
    assert_left(
        f"""g ({NHWC} x, {NCHW} y, float[7,7] m, int64 n, bool c) => ({NCHW} z) {{
            z = Loop (n, c, y) <body = run (int64 i, bool go, {NCHW} v) => (bool on, {NCHW} w) {{
                on = Identity(go)
                w = If (c) <
                    then_branch = one () => ({NCHW} p) {{ t = {OUT}(x)  p = MatMul(t, m) }},
                    else_branch = two () => ({NCHW} q) {{ q = Abs(v) }}
                >
            }}>
        }}""",
        outside=1,
    )


def test_a_value_that_is_transposed_in_every_run() -> None:
    """It comes back in another order each time, so no order is right for all runs."""
    assert_left(
        """g (float[4,4] x, int64 n, bool c) => (float[4,4] z) {
            z = Loop (n, c, x) <body = run (int64 i, bool go, float[4,4] v)
                => (bool on, float[4,4] w) {
                on = Identity(go)
                w = Transpose(v)
            }>
        }""",
        outside=0,
        inside=1,
    )


@by_each_objective
def test_a_value_that_is_carried_as_it_is(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} x, {NHWC} y, int64 n, bool c) => ({NHWC} z, {NHWC} k) {{
            t = {OUT}(x)
            s = {OUT}(y)
            u, h = Loop (n, c, t, s) <
                body = run (int64 i, bool go, {NCHW} v, {NCHW} keep)
                => (bool on, {NCHW} w, {NCHW} keep) {{
                    on = Identity(go)
                    w = Add(v, keep)
                }}
            >
            z = {BACK}(u)
            k = {BACK}(h)
        }}""",
        outside=0,
        objective=objective,
    )


@by_each_objective
def test_two_values_that_change_places(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} x, {NHWC} y, int64 n, bool c) => ({NHWC} z, {NHWC} k) {{
            t = {OUT}(x)
            s = {OUT}(y)
            u, h = Loop (n, c, t, s) <
                body = run (int64 i, bool go, {NCHW} v, {NCHW} w)
                => (bool on, {NCHW} w, {NCHW} v) {{
                    on = Identity(go)
                }}
            >
            z = {BACK}(u)
            k = {BACK}(h)
        }}""",
        outside=0,
        objective=objective,
    )


SLICING = """g (float[4,6] h, {given} x) => (float[4,6] k, {given} y) {{
    t = Transpose<perm=[{there}]>(x)
    k, s = Scan<num_scan_inputs=1, scan_input_axes=[{taken}], scan_output_axes=[{axis}],
        body = run (float[4,6] v, {slice} e) => (float[4,6] w, {slice} f) {{
            w = Abs(v)
            f = Mul(e, e)
        }}>(h, t)
    y = Transpose<perm=[{back}]>(s)
}}"""


def slicing(shape: Sequence[int], there: Permutation, axis: int, taken: int) -> str:
    """A Scan over slices of a tensor that is transposed before and after."""
    transposed = list(there.reorder(shape))
    del transposed[axis]
    return SLICING.format(
        given=f"float{list(shape)}",
        slice=f"float{transposed}",
        there=",".join(map(str, there)),
        back=",".join(map(str, there.inverse())),
        axis=axis,
        taken=taken,
    )


@by_each_objective
@pytest.mark.parametrize(
    ("there", "axis", "taken"), [((0, 3, 1, 2), 0, 0), ((1, 0, 3, 2), 1, -3), ((2, 1, 0, 3), 1, 1)]
)
def test_slices_of_a_tensor_in_another_order(
    there: tuple[int, ...], axis: int, taken: int, objective: Objective
) -> None:
    """The axis they lie along stays where it is, or comes to the front."""
    text = slicing([2, 5, 7, 3], Permutation(there), axis, taken)
    assert_left_in_runtime(text, outside=0, objective=objective)


def test_no_slices_along_an_inner_axis_are_made() -> None:
    """A runtime would copy the tensor to get them."""
    assert_left_in_runtime(slicing([2, 5, 7, 3], Permutation.of(3, 0, 1, 2), 0, 0), outside=2)


@by_each_objective
def test_the_state_of_a_scan(objective: Objective) -> None:
    assert_left(
        f"""g ({NHWC} h, float[4,1] x) => ({NHWC} k, float[4,1] y) {{
            t = {OUT}(h)
            u, y = Scan<num_scan_inputs=1, body = run ({NCHW} v, float[1] e)
                => ({NCHW} w, float[1] f) {{
                    w = Add(v, e)
                    f = Abs(e)
                }}>(t, x)
            k = {BACK}(u)
        }}""",
        outside=0,
        objective=objective,
    )


def test_a_body_of_a_loop_counts_several_times() -> None:
    body = "on = Identity(go)  w = Transpose(v)"
    model = parse(
        f"""g (float[4,4] x, int64 n, bool c) => (float[4,4] z) {{
            y = Transpose(x)
            z = Loop (n, c, y) <body = run (int64 i, bool go, float[4,4] v)
                => (bool on, float[4,4] w) {{ {body} }}>
        }}"""
    )
    assert measure(load(model).ir).bytes_moved == (1 + NOMINAL_RUNS) * 2 * 4 * 16


EMPTY = """g (float[2] h) => (float[2] k, float[a,b,c] y)
<float[0,5,4] given = {}> {
    k, y = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[2],
        body = run (float[2] d, float[0,4] e) => (float[2] w, float[4,0] f) {
            w = Neg(d)
            g = Abs(e)
            f = Transpose<perm=[1,0]>(g)
        }>(h, given)
}"""


def test_an_empty_tensor_is_sliced_as_it_was() -> None:
    """ONNX Runtime divides by the length of what stays within the moved axis."""
    result = relayout.optimize(parse(EMPTY), verify=False).model
    (scan,) = (node for node in result.graph.node if node.op_type == "Scan")
    body = next(attribute.g for attribute in scan.attribute if attribute.name == "body")
    taken = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in body.input]
    given = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in body.output]
    assert (taken[1], given[1]) == ([0, 4], [4, 0])
