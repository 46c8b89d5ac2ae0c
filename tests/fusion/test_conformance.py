"""Every graph of TVM's tests that ONNX can state gives the groups that TVM expects."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from relayout.fusion.groups import Limits
from relayout.fusion.partition import partition
from relayout.fusion.traffic import traffic_of
from relayout.graph.region import regions_of
from tests.fusion.conformance import CHAIN_20, CHAIN_300, DIAMONDS, RELAX, RELAY, Expected
from tests.fusion.grouping import grouped, groups, region_of
from tests.rewrite.rewriting import parse, to_ir

TABLES = (*RELAY, *RELAX)


@pytest.mark.parametrize("row", TABLES, ids=lambda row: row.name)
def test_groups(row: Expected) -> None:
    assert groups(grouped(row.graph, "tvm")) == sorted(row.groups)


@pytest.mark.parametrize("row", TABLES, ids=lambda row: row.name)
def test_relayout_needs_no_more(row: Expected) -> None:
    tvm, ours = (traffic_of(grouped(row.graph, mode)) for mode in ("tvm", "relayout"))
    assert ours.kernels <= tvm.kernels
    assert ours.bytes_moved <= tvm.bytes_moved


@pytest.mark.parametrize(
    ("graph", "depth", "sizes"),
    [(CHAIN_300, 256, [44, 256]), (CHAIN_20, 10, [10, 10]), (DIAMONDS, 11, [11, 11, 11])],
    ids=["300 in a row", "20 in a row", "three diamonds"],
)
def test_depth_limit(graph: str, depth: int, sizes: list[int]) -> None:
    found = grouped(graph, "tvm", Limits(max_depth=depth))
    assert sorted(len(group.nodes) for group in found.groups) == sizes
    assert "depth" in {refusal.code for refusal in found.refusals}


def _sums(count: int, shape: str) -> str:
    inputs = ", ".join(f"float[{shape}] x{i}" for i in range(count))
    constants = ", ".join(f"float c{i} = {{1.0}}" for i in range(count))
    steps = [f"a{i} = Add(x{i}, c{i}) e{i} = Exp(a{i})" for i in range(count)]
    sums = [f"s{i} = Add({'e0' if i == 1 else f's{i - 1}'}, e{i})" for i in range(1, count)]
    result = f"float[{shape}] s{count - 1}"
    return f"g ({inputs}) => ({result}) <{constants}> {{ {' '.join((*steps, *sums))} }}"


@pytest.mark.parametrize(
    ("shape", "limit", "taken"),
    [("10,20", 31, 30), ("10,20", 128, 127), ('"n",20', 31, 7), ('"n",20', 128, 31)],
)
def test_argument_limit(shape: str, limit: int, taken: int) -> None:
    found = grouped(_sums(300, shape), "tvm", Limits(max_depth=1500, max_args=limit))
    first, *others = sorted((group.nodes for group in found.groups), key=len, reverse=True)
    assert sum(node.op_type == "Exp" for node in first) == taken
    kinds = [tuple(node.op_type for node in nodes) for nodes in others]
    assert kinds.count(("Add", "Exp")) == 300 - taken
    assert set(kinds) == {("Add", "Exp"), ("Add",)}


def test_each_function_has_groups_of_its_own() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[10,20] x) => (float[10,20] y) { a = f.one(x) y = f.two(a) }
    <domain: "f", opset_import: ["" : 21]>
    one (x) => (y) { a = Neg(x) b = Exp(a) y = Squeeze(b) }
    <domain: "f", opset_import: ["" : 21]>
    two (x) => (y) { a = Neg(x) b = Exp(a) y = Squeeze(b) }"""
    regions = regions_of(to_ir(parse(text)))
    assert [groups(partition(region, "tvm")) for region in regions] == [
        ["a", "y"],
        ["a b y"],
        ["a b y"],
    ]


CAPTURED = """g (float[6] x, bool k) => (float[2] y) {
  a, b, c = Split<num_outputs = 3>(x)
  r = If(k) <then_branch = t () => (float[2] p) { p = Exp(b) },
             else_branch = e () => (float[2] q) { q = Neg(b) }>
  s = Add(a, r) y = Add(s, c)
}"""


def test_what_a_body_captures_is_read_from_memory() -> None:
    """The result that a body reads keeps the Split out of every group."""
    assert groups(grouped(CAPTURED, "tvm")) == ["a", "r", "s y"]
    assert groups(grouped(CAPTURED, "relayout")) == ["a", "r", "s y"]


def test_lengths_from_values_are_opaque_only_where_they_are_unknown() -> None:
    text = """g (float["n",4] x, int64[2] s) => (float["a","b"] y)
    { e = Exp(x) r = Reshape(e, s) y = Neg(r) }"""
    found = grouped(text, "tvm")
    assert groups(found) == ["e", "r", "y"]
    assert {refusal.code for refusal in found.refusals} == {"data_dependent"}


def test_a_computed_shape_is_an_operand_where_lengths_are_known() -> None:
    text = """g (float[3,4] x, int64[2] s) => (float[2,6] y)
    { e = Exp(x) r = Reshape(e, s) y = Neg(r) }"""
    region = region_of(text)
    reshape = next(node for node in region.graph if node.op_type == "Reshape")
    reshape.outputs[0].shape = ir.Shape([2, 6])
    assert groups(partition(region, "tvm")) == ["e r y"]
