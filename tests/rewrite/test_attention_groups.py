"""Keys and values that are repeated for the heads of a group are read once, and no others."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from relayout.rewrite.attention_groups import ShareKeys
from relayout.rewrite.dead import remove_dead
from relayout.rewrite.worklist import rewrite_model
from tests.rewrite.in_runtime import assert_same
from tests.rewrite.rewriting import parse, to_ir

SIDE_BY_SIDE = """
g (float[2,5,24] q, float[2,{keys},8] k, float[2,{keys},8] v) => (float[2,5,24] y)
<int64[5] apart = {{2,{keys},2,1,4}}, int64[3] joined = {{2,{keys},24}},
 int64[5] times = {{{times}}}>
{{ k1 = Reshape(k, apart)
  k2 = {repeat}(k1, times)
  k3 = Reshape(k2, joined)
  v1 = Reshape(v, apart)
  v2 = {repeat}(v1, times)
  v3 = Reshape(v2, joined)
  y = {call}(q, k3, v3)
  }}
"""
APART = """g (float[2,6,5,4] q, float[2,2,7,4] k, float[2,2,7,4] v) => (float[2,6,5,4] y)
<int64[1] axis = {2}, int64[5] times = {2,2,3,7,4}, int64[4] joined = {2,6,7,4}>
{ k1 = Unsqueeze(k, axis)
  k2 = Expand(k1, times)
  k3 = Reshape(k2, joined)
  v1 = Unsqueeze(v, axis)
  v2 = Expand(v1, times)
  v3 = Reshape(v2, joined)
  y = Attention(q, k3, v3)
  }
"""
MOVED = """g (float[2,5,24] q, float[2,2,7,4] k, float[2,2,7,4] v) => (float[2,5,24] y)
<int64[1] axis = {2}, int64[5] times = {2,2,3,7,4}, int64[3] joined = {2,7,24}>
{ k1 = Unsqueeze(k, axis)
  k2 = Expand(k1, times)
  k3 = Transpose<perm=[0,3,1,2,4]>(k2)
  k4 = Reshape(k3, joined)
  v1 = Unsqueeze(v, axis)
  v2 = Expand(v1, times)
  v3 = Transpose<perm=[0,3,1,2,4]>(v2)
  v4 = Reshape(v3, joined)
  y = com.microsoft.MultiHeadAttention<num_heads=6>(q, k4, v4)
  }
"""
CONTRIB = "com.microsoft.MultiHeadAttention<num_heads=6>"
STANDARD = "Attention<q_num_heads=6, kv_num_heads=6>"


def simplified(model: onnx.ModelProto) -> onnx.ModelProto:
    made = to_ir(model)
    rewrite_model(made, [ShareKeys()])
    remove_dead(made)
    return ir.to_proto(made)


def side_by_side(
    call: str, repeat: str = "Tile", times: str = "1,1,1,3,1", keys: int = 7
) -> onnx.ModelProto:
    return parse(SIDE_BY_SIDE.format(call=call, repeat=repeat, times=times, keys=keys), 23)


@pytest.mark.parametrize(
    "given",
    [
        side_by_side(CONTRIB),
        side_by_side(STANDARD, "Expand", "2,7,2,3,4"),
        side_by_side(STANDARD.replace(">", ", is_causal=1>"), keys=5),
        side_by_side(CONTRIB.replace(">", ", unidirectional=1, scale=0.3>"), keys=5),
        parse(APART, 23),
        parse(MOVED, 23),
    ],
    ids=["contrib", "standard", "causal", "causal with a scale", "heads apart", "moved"],
)
def test_what_heads_share_is_read_once(given: onnx.ModelProto) -> None:
    result = simplified(given)
    assert not {"Tile", "Expand"} & {node.op_type for node in result.graph.node}
    assert_same(given, result)


@pytest.mark.parametrize(
    "given",
    [
        side_by_side("com.microsoft.MultiHeadAttention<num_heads=3>"),
        side_by_side("com.microsoft.MultiHeadAttention<num_heads=12>"),
        side_by_side(CONTRIB.replace(">", ", unidirectional=1>")),
        parse(APART.replace("k2 = Expand(k1, times)", "k2 = Tile(k1, once)").replace(
            "float[2,2,7,4] k,", "float[2,6,7,4] k,").replace(
            "joined =", "once = {1,1,1,1,1}, int64[4] joined ="), 23),
        parse(APART.replace("axis = {2}", "axis = {1}").replace("{2,2,3,7,4}", "{2,3,2,7,4}"), 23),
    ],
    ids=["fewer heads", "more heads", "a causal rectangle", "keys of their own", "heads in turns"],
)  # fmt: skip
def test_other_keys_stay(given: onnx.ModelProto) -> None:
    result = simplified(given)
    assert list(result.graph.node[-1].input) == ["q", "k3", "v3"]
