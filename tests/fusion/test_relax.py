"""The mode that follows TVM's Relax: its kinds, its order, and no vertices but operators."""

from __future__ import annotations

import pytest

from relayout.fusion.groups import Limits
from relayout.fusion.partition import TVM, TVM_RELAX
from relayout.ops.relax_kinds import relax_fuses_as
from tests.fusion.conformance import RELAX, RELAY, Expected
from tests.fusion.grouping import grouped, groups, region_of
from tests.fusion.tables import weight

OTHERWISE = {
    "take": ["k", "y"],
    "gather nd": ["k", "y"],
    "dead group": ["m a r", "m1 y", "t"],
}
"""Where groups are not those of Relay: a Gather is opaque, and what is never read is grouped."""


@pytest.mark.parametrize("row", [*RELAY, *RELAX], ids=lambda row: row.name)
def test_groups(row: Expected) -> None:
    expected = OTHERWISE.get(row.name, row.groups)
    assert groups(grouped(row.graph, TVM_RELAX.name)) == sorted(expected)


SMALL_PRODUCT = f"""g (float[1,2,8,8] x, float[1,2,1,1] s) => (float[1,2,8,8] y)
<{weight("w", 2, 2, 1, 1)}> {{ k = Conv(s, w) y = Mul(x, k) }}"""


def test_one_operand_in_place_makes_an_operator_elementwise() -> None:
    """So a product joins what broadcasts its result, which Relay keeps apart."""
    assert groups(grouped(SMALL_PRODUCT, TVM_RELAX.name)) == ["k y"]
    assert groups(grouped(SMALL_PRODUCT, TVM.name)) == ["k", "y"]


def _summed(*products: str) -> str:
    weights = f"{weight('v', 2, 2, 1, 1)}, {weight('w', 2, 2, 1, 1)}"
    steps = f"{' '.join(products)} y = Add(a, b)"
    return f"g (float[1,2,8,8] x) => (float[1,2,8,8] y) <{weights}> {{ {steps} }}"


def test_operators_are_taken_in_the_order_of_the_file() -> None:
    """The first product of two takes their sum; Relay goes by the operands of the sum."""
    left, right = "a = Conv(x, v)", "b = Conv(x, w)"
    assert groups(grouped(_summed(left, right), TVM_RELAX.name)) == ["a y", "b"]
    assert groups(grouped(_summed(right, left), TVM_RELAX.name)) == ["a", "b y"]
    assert groups(grouped(_summed(right, left), TVM.name)) == ["a y", "b"]


SCALED = "g (float[4] x) => (float[4] y) <float c = {1.0}> { a = Add(x, c) y = Exp(a) }"
JOINED = """g (float[4] x) => (float[8] y)
{ a = Exp(x) b = Neg(x) k = Concat<axis = 0>(a, b) y = Abs(k) }"""


def test_scalars_and_bundles_are_no_vertices() -> None:
    """A scalar is handed to the kernel, and only operators count for the limit."""
    (group,) = grouped(SCALED, TVM_RELAX.name, Limits(max_depth=2)).groups
    assert not group.constants
    assert len(grouped(SCALED, TVM.name, Limits(max_depth=2)).groups) == 2
    assert groups(grouped(JOINED, TVM_RELAX.name, Limits(max_depth=4))) == ["a b k y"]
    assert groups(grouped(JOINED, TVM.name, Limits(max_depth=4))) != ["a b k y"]


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        ("g (float[2,1] x, float[1,3] z) => (float[2,3] y) { y = Add(x, z) }", "broadcast"),
        ("g (float[2,3] x, float[3] z) => (float[2,3] y) { y = Add(x, z) }", "elementwise"),
        ("g (float[2,1,3] x) => (float[2,3] y) { y = Squeeze(x) }", "broadcast"),
        ("g (float[2,3] x) => (float[2,3] y) { y = Squeeze(x) }", "elementwise"),
        ("g (float[2,3] x) => (float[2,3] y) { y = Transpose<perm = [0,1]>(x) }", "elementwise"),
        ("g (float[2,3] x) => (float[3,2] y) { y = Transpose(x) }", "injective"),
        ("g (float[2,3] x) => (float[2,3] y) { y = Concat<axis = 0>(x) }", "elementwise"),
        ("g (float[2,3] x, float[3] z) => (float[2] y) { y = MatMul(x, z) }", "reduction"),
        ("g (float[2,3] x) => (float[2,1] y) { y = ReduceMean<axes = [1]>(x) }", "complex"),
    ],
)
def test_kinds_that_tvm_was_seen_to_derive(graph: str, kind: str) -> None:
    region = region_of(graph, opset=13)
    assert relax_fuses_as(region.view(next(iter(region.graph)))).kind.name.lower() == kind


@pytest.mark.parametrize(("start", "kind"), [(0, "elementwise"), (1, "injective")])
def test_a_slice_from_the_beginning_stays_in_place(start: int, kind: str) -> None:
    region = region_of(
        f"g (float[4] x) => (float[2] y) <int64[1] a = {{{start}}}, int64[1] b = {{{start + 2}}}>"
        " { y = Slice(x, a, b) }"
    )
    assert relax_fuses_as(region.view(next(iter(region.graph)))).kind.name.lower() == kind
