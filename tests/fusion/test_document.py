"""The examples of the founding document, edge by edge."""

from __future__ import annotations

from relayout.fusion.dump import dump
from relayout.fusion.groups import Limits
from tests.fusion.grouping import grouped, groups, region_of

ONES = ",".join(["1"] * 48)

CHAIN = """g (float[10] data) => (float[10] y)
<float[10] C = {1,2,3,4,5,6,7,8,9,10}, float two = {2.0}>
{ a = Div(data, C) b = Mul(a, two) y = Relu(b) }"""

NET = f"""g (float[1,3,4,4] data) => (float[1,3,2,2] y)
<float[1,3,4,4] C = {{{ONES}}}, float two = {{2.0}}>
{{
  a = Div(data, C)
  b = Mul(a, two)
  c = Relu(b)
  d = MaxPool<kernel_shape = [2, 2]>(c)
  e = Relu(d)
  f = MaxPool<kernel_shape = [2, 2]>(e)
  y = Relu(f)
}}"""

DUMP = """\
node[0], data, kind=8 extern outputs=[2:0] ipdom=- depth=1 between=8 group=0
node[1], C, kind=8 outputs=[2:0] ipdom=2 depth=8 between=0 group=1
node[2], Div, kind=1 outputs=[4:0] ipdom=4 depth=7 between=0 group=2
node[3], two, kind=0 outputs=[4:1] ipdom=4 depth=7 between=1 group=2
node[4], Mul, kind=1 outputs=[5:0] ipdom=5 depth=6 between=0 group=2
node[5], Relu, kind=0 outputs=[6:4] ipdom=6 depth=5 between=4 group=2
node[6], MaxPool, kind=4 outputs=[7:0] ipdom=7 depth=4 between=0 group=3
node[7], Relu, kind=0 outputs=[8:4] ipdom=8 depth=3 between=4 group=3
node[8], MaxPool, kind=4 outputs=[9:0] ipdom=9 depth=2 between=0 group=4
node[9], Relu, kind=0 extern outputs=[] ipdom=- depth=1 between=8 group=4
group 0 root=0 kind=8 nodes=1
group 1 root=1 kind=8 nodes=1
group 2 root=5 kind=0 nodes=4
group 3 root=7 anchor=6 kind=4 nodes=2
group 4 root=9 anchor=8 kind=4 nodes=2"""


def test_divide_multiply_relu_is_one_group_that_keeps_the_scalar() -> None:
    found = grouped(CHAIN, "tvm")
    (group,) = found.groups
    assert [node.op_type for node in group.nodes] == ["Div", "Mul", "Relu"]
    assert [constant.name for constant in group.constants] == ["two"]
    assert found.refusals == ()


def test_the_net_has_exactly_the_edges_and_groups_of_the_document() -> None:
    assert dump(region_of(NET)) == DUMP


def test_three_groups_of_the_net_compute() -> None:
    found = grouped(NET, "tvm")
    assert groups(found) == ["a b c", "d e", "f y"]
    assert [group.anchor and group.anchor.op_type for group in found.groups] == [
        None,
        "MaxPool",
        "MaxPool",
    ]


def test_what_was_refused_has_a_reason() -> None:
    assert [(refusal.code, refusal.reason) for refusal in grouped(NET, "tvm").refusals] == [
        ("complex_prologue", "nothing is computed while MaxPool d reads its operands"),
        ("two_anchors", "both sides hold a complex operator"),
    ]


def test_level_0_leaves_everything_alone() -> None:
    alone = ["a", "b", "c", "d", "e", "f", "y"]
    assert groups(grouped(NET, "tvm", Limits(level=0))) == alone
    assert groups(grouped(NET, "relayout", Limits(level=0))) == alone
