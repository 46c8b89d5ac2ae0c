"""Attentions spelt out, as exporters do, become operators that need no Transposes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator

from relayout.errors import RelayoutError
from relayout.graph.invariants import Signature
from relayout.graph.io.load import load
from relayout.ops.versions.raising import raised as in_opset
from relayout.optimizer.pipeline import Checking, local_rules
from relayout.targets.target import ONNX, ORT, Target
from tests.rewrite.rewriting import parse, to_ir, transposes

SCALE = {"float16": str(np.float16(0.3).view(np.int16))}
"""The text of a model states numbers of 16 bits by their bits."""


@dataclass(frozen=True)
class Attention:
    """An attention to be written down in one of many ways."""

    batch: int = 2
    length: int = 5
    keys: int = 7
    heads: int = 3
    depth: int = 9
    out_depth: int = 9
    element: str = "float"
    scores: str = "s = MatMul (q, k) scaled = Mul (s, scale)"
    weights: str = "w = Softmax <axis = -1> (scaled)"
    mask: str = ""
    """The declaration of one more input."""
    outputs: str = ""
    split_heads: str = ""
    """Other nodes that give q, k and v."""
    inputs: str = ""

    def text(self) -> str:
        b, s, t, h, d, e = self.sizes
        kind = self.element
        inputs = self.inputs or (
            f"{kind}[{b},{s},{h * d}] x, {kind}[{b},{t},{h * d}] y, {kind}[{b},{t},{h * e}] z"
        )
        split = (
            self.split_heads
            or f"""
            qs = Constant <value_ints = [{b},{s},{h},{d}]> ()
            ks = Constant <value_ints = [{b},{t},{h},{d}]> ()
            vs = Constant <value_ints = [{b},{t},{h},{e}]> ()
            q4 = Reshape (x, qs) q = Transpose <perm = [0,2,1,3]> (q4)
            k4 = Reshape (y, ks) k = Transpose <perm = [0,2,3,1]> (k4)
            v4 = Reshape (z, vs) v = Transpose <perm = [0,2,1,3]> (v4)"""
        )
        return f"""attend ({inputs}{self.mask and ", " + self.mask})
            => ({kind}[{b},{s},{h * e}] out{self.outputs and ", " + self.outputs})
            <{kind} scale = {{{SCALE.get(kind, "0.3")}}}> {{
            {split} {self.scores} {self.weights}
            r = MatMul (w, v) r4 = Transpose <perm = [0,2,1,3]> (r)
            rs = Constant <value_ints = [{b},{s},{h * e}]> () out = Reshape (r4, rs) }}"""

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.batch, self.length, self.keys, self.heads, self.depth, self.out_depth


def raised(model: onnx.ModelProto, target: Target) -> onnx.ModelProto:
    model_ir = to_ir(model)
    local_rules(target).run(model_ir, [Checking(Signature.of(model_ir))])
    return ir.to_proto(model_ir)


def attentions(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [n for n in model.graph.node if n.op_type in {"Attention", "MultiHeadAttention"}]


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or 4 for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        data = rng.standard_normal(shape)
        feeds[value.name] = data > -0.5 if dtype == np.bool_ else data.astype(dtype)
    return feeds


def reference(model: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    """The first output by the definition of the operators."""
    results: Any = ReferenceEvaluator(model).run(None, feeds)
    return results[0]


def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    results: list[Any] = session.run(None, feeds)
    return results


def assert_raised(spelling: Attention, opset: int, target: Target) -> onnx.ModelProto:
    """One operator, no Transposes, and the numbers of the reference in every runtime."""
    model = parse(spelling.text(), opset)
    result = raised(model, target)
    onnx.checker.check_model(result)
    assert len(attentions(result)) == 1, onnx.printer.to_text(result)
    assert transposes(result) == 0, onnx.printer.to_text(result)
    feeds = feeds_of(model)
    expected = reference(model, feeds)
    tolerance = 4e-3 if spelling.element == "float16" else 2e-6
    np.testing.assert_allclose(run(result, feeds)[0], expected, rtol=tolerance, atol=tolerance)
    if opset >= 23:
        got = reference(result, feeds)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    return result


def assert_kept(spelling: Attention, opset: int = 23, target: Target = ORT) -> None:
    assert not attentions(raised(parse(spelling.text(), opset), target))


FORMS = [pytest.param(23, ONNX, id="Attention"), pytest.param(17, ORT, id="MultiHeadAttention")]

SIZES = [
    Attention(),
    Attention(batch=1),
    Attention(length=1),
    Attention(length=7, keys=7, depth=8, out_depth=5),
    Attention(batch=1, heads=1, depth=33, out_depth=16),
    Attention(length=33, keys=65, heads=2, depth=65, out_depth=63),
    Attention(element="float16"),
    Attention(element="float16", depth=40, out_depth=17),
]


@pytest.mark.parametrize(("opset", "target"), FORMS)
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "-".join(map(str, sizes.sizes)))
def test_heads_side_by_side(sizes: Attention, opset: int, target: Target) -> None:
    assert_raised(sizes, opset, target)


SCALES = {
    "none": "scaled = MatMul (q, k)",
    "divided": "s = MatMul (q, k) scaled = Div (s, scale)",
    "query": "qq = Mul (q, scale) scaled = MatMul (qq, k)",
    "key": "kk = Mul (scale, k) scaled = MatMul (q, kk)",
    "both": "qq = Mul (q, scale) kk = Mul (k, scale) scaled = MatMul (qq, kk)",
    "after the split": "kk = Identity (k) s = MatMul (q, kk) scaled = Mul (s, scale)",
    "at run time": "one = ReduceMax <keepdims = 0> (x) c = Exp (one) s = MatMul (q, k) "
    "scaled = Mul (s, c)",
}


@pytest.mark.parametrize(("opset", "target"), FORMS)
@pytest.mark.parametrize("scores", SCALES.values(), ids=SCALES)
def test_scales(scores: str, opset: int, target: Target) -> None:
    assert_raised(Attention(scores=scores), opset, target)


def test_the_scale_is_written_down() -> None:
    result = assert_raised(Attention(scores=SCALES["both"]), 23, ONNX)
    scale = next(a.f for a in attentions(result)[0].attribute if a.name == "scale")
    assert scale == pytest.approx(0.09)


MASKED = "s = MatMul (q, k) sc = Mul (s, scale) scaled = Add (sc, m)"


@pytest.mark.parametrize(("opset", "target"), FORMS)
@pytest.mark.parametrize(
    "shape", ["2,3,5,7", "1,1,5,7", "2,1,1,7", "5,7", "7", "3,5,7", "1,3,5,1", "2,3,1,1"]
)
def test_masks_of_every_shape(shape: str, opset: int, target: Target) -> None:
    assert_raised(Attention(scores=MASKED, mask=f"float[{shape}] m"), opset, target)


@pytest.mark.parametrize(("opset", "target"), FORMS)
def test_two_masks_are_added_first(opset: int, target: Target) -> None:
    scores = f"{MASKED.replace('scaled', 'once')} scaled = Add (n, once)"
    assert_raised(
        Attention(scores=scores, mask="float[1,3,5,7] m, float[2,1,1,7] n"), opset, target
    )


@pytest.mark.parametrize(("opset", "target"), FORMS)
def test_a_mask_of_windows(opset: int, target: Target) -> None:
    scores = """s = MatMul (q, k) s5 = Constant <value_ints = [1,2,3,5,7]> ()
        apart = Reshape (s, s5) added = Add (apart, m)
        s4 = Constant <value_ints = [2,3,5,7]> () scaled = Reshape (added, s4)"""
    assert_raised(Attention(scores=scores, mask="float[1,2,1,5,7] m"), opset, target)


@pytest.mark.parametrize(("opset", "target"), FORMS)
def test_a_condition(opset: int, target: Target) -> None:
    scores = """s = MatMul (q, k) hidden = Constant <value_float = -inf> ()
        scaled = Where (m, s, hidden)"""
    assert_raised(Attention(scores=scores, mask="bool[2,1,5,7] m"), opset, target)


GUARDED = """soft = Softmax <axis = -1> (scaled) odd = IsNaN (soft)
    zero = Constant <value_float = 0.0> () w = Where (odd, zero, soft)"""


def test_a_guard_against_rows_without_numbers() -> None:
    scores = """s = MatMul (q, k) hidden = Constant <value_float = -inf> ()
        scaled = Where (m, s, hidden)"""
    guarded = Attention(scores=scores, weights=GUARDED, mask="bool[2,1,5,7] m")
    assert_raised(guarded, 23, ONNX)
    assert_kept(guarded, 17, ORT)
    assert_raised(Attention(weights=GUARDED), 17, ORT)


@pytest.mark.parametrize(("opset", "target"), FORMS)
def test_rows_hidden_by_the_least_number_weigh_all_alike(opset: int, target: Target) -> None:
    scores = """s = MatMul (q, k) never = Constant <value_float = -3.4028234663852886e38> ()
        zero = Constant <value_float = 0.0> () mask = Where (m, zero, never)
        scaled = Add (s, mask)"""
    spelling = Attention(scores=scores, mask="bool[2,1,5,1] m")
    result = assert_raised(spelling, opset, target)
    feeds = {**feeds_of(parse(spelling.text(), opset)), "m": np.zeros((2, 1, 5, 1), bool)}
    expected = reference(parse(spelling.text(), opset), feeds)
    np.testing.assert_allclose(run(result, feeds)[0], expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("row", "is_safe"), [("1,0,0,0,0,0,1", True), ("0,0,0,0,0,0,0", False)])
def test_a_guard_beside_a_constant_that_leaves_numbers(row: str, is_safe: bool) -> None:
    rows = ",".join(["1,1,0,1,1,1,1"] * 4 + [row])
    scores = f"""s = MatMul (q, k) hidden = Constant <value_float = -inf> ()
        m = Constant <value = bool[5,7] {{{rows}}}> ()
        scaled = Where (m, s, hidden)"""
    guarded = Attention(scores=scores, weights=GUARDED)
    (assert_raised if is_safe else assert_kept)(guarded, 17, ORT)


PACKED = """ps = Constant <value_ints = [2,5,3,3,9]> () p = Reshape (x, ps)
    parts = Transpose <perm = [2,0,3,1,4]> (p)"""

PICKS = {
    "Split": """axes = Constant <value_ints = [0]> ()
        ones = Constant <value_ints = [1,1,1]> ()
        q5, k5, v5 = Split <axis = 0> (parts, ones)
        q = Squeeze (q5, axes) kn = Squeeze (k5, axes) v = Squeeze (v5, axes)""",
    "Slice": """axes = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> ()
        two = Constant <value_ints = [2]> () three = Constant <value_ints = [3]> ()
        q5 = Slice (parts, axes, one, axes) q = Squeeze (q5, axes)
        k5 = Slice (parts, one, two, axes) kn = Squeeze (k5, axes)
        v5 = Slice (parts, two, three, axes) v = Squeeze (v5, axes)""",
    "Gather": """i = Constant <value_int = 0> () j = Constant <value_int = 1> ()
        l = Constant <value_int = -1> ()
        q = Gather (parts, i) kn = Gather (parts, j) v = Gather (parts, l)""",
}


@pytest.mark.parametrize(("opset", "target"), FORMS)
@pytest.mark.parametrize("pick", PICKS.values(), ids=PICKS)
def test_packed_operands(pick: str, opset: int, target: Target) -> None:
    split = f"{PACKED} {pick} k = Transpose <perm = [0,1,3,2]> (kn)"
    packed = Attention(keys=5, split_heads=split, inputs="float[2,5,81] x")
    result = assert_raised(packed, opset, target)
    assert [node.op_type for node in result.graph.node].count("Split") == 1


def test_operands_packed_within_heads_are_kept() -> None:
    split = """ps = Constant <value_ints = [2,5,3,27]> () p = Reshape (x, ps)
        h = Transpose <perm = [0,2,1,3]> (p) n = Constant <value_ints = [9,9,9]> ()
        q, kn, v = Split <axis = 3> (h, n) k = Transpose <perm = [0,1,3,2]> (kn)"""
    assert_kept(Attention(keys=5, split_heads=split, inputs="float[2,5,81] x"))


@pytest.mark.parametrize(("opset", "target"), FORMS)
def test_batch_and_heads_as_one_axis(opset: int, target: Target) -> None:
    text = """attend (float[2,5,27] x, float[2,7,27] y, float[2,7,27] z) => (float[2,5,27] out)
        <float scale = {0.3}, int64[4] qs = {2,5,3,9}, int64[4] ks = {2,7,3,9},
         int64[3] qm = {6,5,9}, int64[3] km = {6,7,9}, int64[4] apart = {2,3,5,9},
         int64[3] flat = {2,5,27}> {
        q4 = Reshape (x, qs) qt = Transpose <perm = [0,2,1,3]> (q4) q = Reshape (qt, qm)
        k4 = Reshape (y, ks) kt = Transpose <perm = [0,2,1,3]> (k4) kn = Reshape (kt, km)
        v4 = Reshape (z, ks) vt = Transpose <perm = [0,2,1,3]> (v4) v = Reshape (vt, km)
        k = Transpose <perm = [0,2,1]> (kn) s = MatMul (q, k) sc = Div (s, scale)
        w = Softmax <axis = 2> (sc) r3 = MatMul (w, v) r = Reshape (r3, apart)
        rt = Transpose <perm = [0,2,1,3]> (r) out = Reshape (rt, flat) }"""
    model = parse(text, opset)
    result = raised(model, target)
    assert len(attentions(result)) == 1
    assert transposes(result) == 0
    feeds = feeds_of(model)
    expected = reference(model, feeds)
    np.testing.assert_allclose(run(result, feeds)[0], expected, rtol=2e-6, atol=2e-6)


SYMBOLIC = """attend (float[n,s,27] x, float[n,s,27] y, float[n,1,1,s] m) => (float[n,s,27] out)
    <float scale = {0.3}, int64[4] apart = {0,0,3,9}, int64[3] flat = {0,0,27}> {
    q4 = Reshape (x, apart) q = Transpose <perm = [0,2,1,3]> (q4)
    k4 = Reshape (y, apart) k = Transpose <perm = [0,2,3,1]> (k4)
    v4 = Reshape (y, apart) v = Transpose <perm = [0,2,1,3]> (v4)
    sc = MatMul (q, k) sm = Mul (sc, scale) sa = Add (sm, m) w = Softmax <axis = 3> (sa)
    d = Dropout (w) r = MatMul (d, v) rt = Transpose <perm = [0,2,1,3]> (r)
    out = Reshape (rt, flat) }"""


@pytest.mark.parametrize("opset", [12, 17, 23])
def test_lengths_known_only_at_run_time(opset: int) -> None:
    model = parse(SYMBOLIC, opset)
    result = raised(model, ORT)
    assert len(attentions(result)) == 1
    assert transposes(result) == 0
    for batch, length in [(1, 1), (2, 5), (3, 17)]:
        rng = np.random.default_rng(batch)
        feeds = {name: rng.standard_normal((batch, length, 27), np.float32) for name in "xy"}
        feeds["m"] = rng.standard_normal((batch, 1, 1, length), np.float32)
        expected = reference(model, feeds)
        np.testing.assert_allclose(run(result, feeds)[0], expected, rtol=2e-6, atol=2e-6)


def test_a_mask_that_may_widen_the_batch_is_kept() -> None:
    model = parse(SYMBOLIC.replace("float[n,1,1,s] m", "float[b,1,1,s] m"), 23)
    assert not attentions(raised(model, ORT))


REFUSED = {
    "scores are an output": Attention(outputs="float[2,3,5,7] scaled"),
    "weights are an output": Attention(outputs="float[2,3,5,7] w"),
    "scores are read elsewhere": Attention(
        weights="w = Softmax <axis = -1> (scaled) more = Neg (scaled)",
        outputs="float[2,3,5,7] more",
    ),
    "softmax over queries": Attention(weights="w = Softmax <axis = 2> (scaled)"),
    "scaled after the mask": Attention(
        scores="s = MatMul (q, k) a = Add (s, m) scaled = Mul (a, scale)",
        mask="float[2,3,5,7] m",
    ),
    "scaled by head": Attention(
        scores="s = MatMul (q, k) scaled = Mul (s, m)", mask="float[1,3,1,1] m"
    ),
    "scaled by a negative number": Attention(
        scores="n = Constant <value_float = -0.3> () s = MatMul (q, k) scaled = Mul (s, n)"
    ),
    "hidden by a finite number": Attention(
        scores="""s = MatMul (q, k) hidden = Constant <value_float = -10000.0> ()
            scaled = Where (m, s, hidden)""",
        mask="bool[2,1,5,7] m",
    ),
    "no heads are moved": Attention(
        inputs="float[2,3,5,9] x, float[2,3,9,7] y, float[2,3,7,9] z",
        split_heads="q = Identity (x) k = Identity (y) v = Identity (z)",
    ),
    "double has no kernel of ORT's own": Attention(element="double"),
}


@pytest.mark.parametrize("spelling", REFUSED.values(), ids=REFUSED)
def test_refusals(spelling: Attention) -> None:
    assert_kept(spelling, 17 if spelling.element == "double" else 23)


def test_older_opsets_stay_for_any_runtime() -> None:
    assert_kept(Attention(), 22, ONNX)


def test_heads_of_an_attention_operator_are_joined() -> None:
    spelling = replace(
        Attention(keys=5),
        scores="kt = Transpose <perm = [0,1,3,2]> (k)",
        weights="a = Attention <scale = 0.25> (q, kt, v, m)",
        mask="float[5,5] m",
    )
    text = spelling.text().replace("r = MatMul (w, v)", "r = Identity (a)")
    model = parse(text, 23)
    result = raised(model, ONNX)
    assert transposes(result) == 0
    feeds = feeds_of(model)
    expected = reference(model, feeds)
    for got in (run(result, feeds)[0], reference(result, feeds)):
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)


def test_opset_is_raised() -> None:
    model = parse(Attention().text(), 17)
    model.graph.node[0].metadata_props.add(key="from", value="here")
    newer = in_opset(load(model), 23)
    assert newer.opset_import[0].version == 23
    assert newer.graph.output == model.graph.output
    assert newer.graph.node[0].metadata_props == model.graph.node[0].metadata_props
    assert len(attentions(raised(newer, ONNX))) == 1


@pytest.mark.parametrize("version", [16, 1000])
def test_opset_cannot_be_lowered_or_unknown(version: int) -> None:
    with pytest.raises(RelayoutError, match=str(version)):
        in_opset(load(parse(Attention().text(), 17)), version)
