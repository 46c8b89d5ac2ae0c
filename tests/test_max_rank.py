"""No tensor of a result has more axes than asked for, unless the given model has one that does."""

from __future__ import annotations

import onnx
import pytest

import relayout
from relayout.graph.io.load import load
from relayout.ops.measure import most_axes
from relayout.rewrite.atoms import SinkMerge
from relayout.rewrite.worklist import rewrite_model

MERGED = """
<ir_version: 8, opset_import: ["" : 17]>
merged (float[2,3,5] x) => (float[6,5] y) <int64[2] target = {6, 5}>
{
    a = Reshape(x, target)
    y = Relu(a)
}
"""

HEADS = """
<ir_version: 8, opset_import: ["" : 17]>
heads (float[4,6,8] x) => (float[4,8,6] y)
<int64[5] parts = {2, 2, 6, 2, 4}, int64[3] whole = {4, 8, 6}>
{
    a = Reshape(x, parts)
    b = Transpose<perm = [0, 1, 3, 4, 2]>(a)
    c = Relu(b)
    y = Reshape(c, whole)
}
"""


@pytest.mark.parametrize(("most", "sinks"), [(2, 0), (3, 1)])
def test_axes_are_split_into_as_many_factors_as_allowed(most: int, sinks: int) -> None:
    model = load(onnx.parser.parse_model(MERGED)).ir
    assert rewrite_model(model, [SinkMerge(most)]).total() == sinks
    ranks = [value.shape.rank() for node in model.graph for value in node.outputs if value.shape]
    assert max(ranks) == 2 + sinks


@pytest.mark.parametrize("most", [3, 4, 5, 7])
def test_a_result_has_no_more_axes_than_asked_for_or_given(most: int) -> None:
    given = onnx.parser.parse_model(HEADS)
    result = relayout.optimize(given, max_rank=most)
    assert result.accepted
    assert most_axes(load(result.model).ir) <= max(most, 5)


def shuffled(groups: int) -> onnx.ModelProto:
    """Channels shuffled over a merged batch, for which operators could work on factors."""
    return onnx.parser.parse_model(f"""
<ir_version: 8, opset_import: ["" : 17]>
shuffled (float[6,4,5] x) => (float[4,6,5] y)
<int64[3] parts = {{{groups}, {6 // groups}, 20}}, int64[3] whole = {{4, 6, 5}}>
{{
    a = Reshape(x, parts)
    b = Transpose<perm = [1, 0, 2]>(a)
    c = Relu(b)
    y = Reshape(c, whole)
}}
""")


@pytest.mark.parametrize("minimize", ["bytes", "count"])
def test_by_default_a_result_has_no_more_axes_than_the_given_model(minimize: str) -> None:
    result = relayout.optimize(shuffled(2), minimize=minimize)
    assert result.accepted
    assert most_axes(load(result.model).ir) == 3
