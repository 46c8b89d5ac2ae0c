"""The layout of every tensor: backwards from what is known, defaults, forwards."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import relayout
from relayout.api import optimize
from relayout.cli import main
from relayout.errors import RelayoutError
from relayout.report.layouts import LayoutsRecord
from tests.rewrite.rewriting import parse
from tests.suites.random_graphs import random_graph

WEIGHT = "float[4,4,1,1] w"
CHAIN = f"""chain (float[2,4,6,5] x, {WEIGHT}, float[3,7] m) => (float[2,40,7] y)
<int64[3] split = {{2, -1, 3}}> {{
    a = Conv(x, w)
    b = Reshape(a, split)
    c = Relu(b)
    g = Sigmoid(c)
    d = Reshape(g, split)
    y = MatMul(d, m)
}}"""


def layouts(text: str, look: str = "before", walk: str = "forwards") -> LayoutsRecord:
    return relayout.infer_layouts(parse(text), look=look, walk=walk)


def seen(record: LayoutsRecord, names: str) -> list[str]:
    return [record[name].layout for name in names.split()]


def test_two_reshapes_in_a_row_need_no_conversion() -> None:
    """Convolution and product know theirs; between them there is something new."""
    record = layouts(CHAIN)
    assert seen(record, "x w a") == ["NCHW", "OIHW", "NCHW"]
    assert seen(record, "b c g d y") == [*["Tensor"] * 3, *["NTensor"] * 2]
    assert [record[name].told for name in "abcgd"] == ["backwards", *["forwards"] * 3, "backwards"]
    assert record.conflicts == ()


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("Conv(u, v)", ["NCHW", "OIHW", "NCHW"]),
        ("ConvInteger(p, q)", ["NCHW", "OIHW", "NCHW"]),
        ("QLinearConv(p, s, zero, q, s, zero, s, zero)", ["NCHW", "OIHW", "NCHW"]),
        ("MatMul(u, v)", ["NTensor"] * 3),
        ("MatMulInteger(p, q)", ["NTensor"] * 3),
        ("QLinearMatMul(p, s, zero, q, s, zero, s, zero)", ["NTensor"] * 3),
    ],
    ids=lambda each: each.partition("(")[0] if isinstance(each, str) else "",
)
def test_known_operators_and_their_quantised_forms(operator: str, expected: list[str]) -> None:
    read = "u v" if "(u" in operator else "p q"
    kind = "int32" if "Integer" in operator else "uint8" if "QLinear" in operator else "float"
    text = f"""known (float[4,4,1,1] u, float[4,4,1,1] v, uint8[4,4,1,1] p, uint8[4,4,1,1] q,
        float s, uint8 zero) => ({kind} y) {{ y = {operator} }}"""
    assert seen(layouts(text), f"{read} y") == expected


@pytest.mark.parametrize("operator", ["Gemm(x, m)", "Gemm<transA = 1>(x, m)"])
def test_matrices_are_tensors(operator: str) -> None:
    text = f"matrix (float[4,4] x, float[4,4] m) => (float[4,4] y) {{ y = {operator} }}"
    assert seen(layouts(text), "x m y") == ["Tensor"] * 3


def test_a_reshape_makes_features_only_where_something_after_it_reads_them() -> None:
    record = layouts(
        f"""reshaped (float[2,120] x, {WEIGHT}) => (float[2,4,6,5] y)
        <int64[4] image = {{2, 4, 6, 5}}> {{
            a = Reshape(x, image)
            b = Relu(a)
            y = Conv(b, w)
        }}"""
    )
    assert seen(record, "x a b y") == ["Tensor", "NCHW", "NCHW", "NCHW"]


def test_six_nodes_with_one_known_and_a_conflict_where_they_meet() -> None:
    """The convolution C fixes A and B; D sees A in another layout, and F both it and E."""
    record = layouts(
        """six (float[2,4,4,4] a, float[4,4,1,1] b) => (float[2,4,4,4] f) {
            c = Conv(a, b)
            d = Transpose<perm = [0, 2, 3, 1]>(a)
            e = Relu(c)
            f = Add(e, d)
        }"""
    )
    assert seen(record, "b a c e d f") == ["OIHW", "NCHW", "NCHW", "NCHW", "NHWC", "NCHW"]
    (conflict,) = record.conflicts
    assert (conflict.tensor, conflict.layout, conflict.wanted) == ("d", "NHWC", "NCHW")
    assert conflict.readers == 1


def test_a_path_without_a_known_operator_has_the_default() -> None:
    """The Reshape is skipped backwards, and the lowest path meets nothing that is known."""
    record = layouts(
        f"""paths (float[1,4,6,5] x, {WEIGHT}, float[1,7,9] z, float[3,2,9] n)
            => (float[1,120] p, float[1,7,9] q, float[3,2,9] r)
        <int64[2] flat = {{1, -1}}> {{
            a = Conv(x, w)
            p = Reshape(a, flat)
            q = Relu(z)
            r = Relu(n)
        }}"""
    )
    assert seen(record, "x p z q n r") == ["NCHW", "Tensor", *["Tensor"] * 2, *["NTensor"] * 2]
    assert [record[name].told for name in "xzqp"] == [
        "backwards",
        "default",
        "forwards",
        "forwards",
    ]


def test_defaults_of_inputs() -> None:
    """Four axes that only agnostic operators read stay as in ONNX; a consumer may fix more."""
    record = layouts(
        """defaults (float[2,3,4,5] agnostic, float[2,3,4] normal, float[2,3,4,5] lost,
                     float[3] s)
            => (float[2,3,4,5] a, float[2,3,4] b, float[120] c)
        <int64[1] flat = {-1}> {
            a = Relu(agnostic)
            b = BatchNormalization(normal, s, s, s, s)
            t = Relu(lost)
            c = Reshape(t, flat)
        }"""
    )
    assert seen(record, "agnostic a normal b lost s") == [
        *("NCHW", "NCHW", "NCW", "NCW", "NTensor", "Tensor")
    ]


def test_readers_that_disagree_are_outvoted_the_first_one_in_a_draw() -> None:
    text = """votes (float[4,4,4,4] x, float[4,4,1,1] v) => (float[4,4,4,4] a, float[4,4,4,4] b) {
        t = Relu(x)
        a = Conv(v, t)
        b = Conv(t, v)
    }"""
    record = layouts(text)
    assert seen(record, "t x") == ["OIHW", "OIHW"]
    assert ("t", "OIHW", "NCHW") in [(c.tensor, c.layout, c.wanted) for c in record.conflicts]
    third = text.replace("b = Conv(t, v)\n", "b = Conv(t, v)\n c = Conv(t, v)\n")
    assert seen(layouts(third), "t x") == ["NCHW", "NCHW"]


def test_every_result_of_an_operator_has_its_own_colour() -> None:
    record = layouts(
        f"""results (float[2,8,6,5] x, {WEIGHT}, int64[1] k)
            => (float[2,4,6,5] y, float[2,4,6,2] top, int64[2,4,6,2] places) {{
            a, b = Split<axis = 1, num_outputs = 2>(x)
            y = Conv(a, w)
            top, places = TopK(b, k)
        }}"""
    )
    assert seen(record, "x a b top places k") == [*["NCHW"] * 5, "Tensor"]


def test_transposes_permute_the_letters_both_ways() -> None:
    record = layouts(
        f"""turned (float[3,5,6,4] x, {WEIGHT}) => (float[3,5,6,4] y) {{
            a = Transpose<perm = [0, 3, 1, 2]>(x)
            b = Conv(a, w)
            y = Transpose<perm = [0, 2, 3, 1]>(b)
        }}"""
    )
    assert seen(record, "x a b y") == ["NHWC", "NCHW", "NCHW", "NHWC"]


def test_weights_through_their_dequantisation_and_of_transposed_convolutions() -> None:
    record = layouts(
        """quantised (float[1,4,6,5] x, int8[4,2,3,3] q, float s, float[2,3,3,3] v)
            => (float z) {
            w = DequantizeLinear(q, s)
            a = ConvTranspose(x, w)
            z = Conv(a, v)
        }"""
    )
    assert seen(record, "q w v s") == ["IOHW", "IOHW", "OIHW", "Tensor"]


@pytest.mark.parametrize(
    ("look", "expected"), [("before", "NTensor"), ("after", "NCHW"), ("nearest", "NCHW")]
)
def test_a_reshape_may_be_inferred_from_operators_after_it(look: str, expected: str) -> None:
    """Two Reshapes: nothing fixes the layout of what is between them."""
    record = layouts(
        f"""looks (float[2,120] x, {WEIGHT}) => (float[2,4,6,5] y)
        <int64[4] image = {{2, 4, 6, 5}}, int64[4] same = {{0, 0, 0, 0}}> {{
            a = Reshape(x, image)
            b = Relu(a)
            c = Reshape(b, same)
            y = Conv(c, w)
        }}""",
        look,
    )
    assert seen(record, "a b c") == [expected, expected, "NCHW"]


def test_the_nearest_of_both_sides_is_looked_at() -> None:
    text = f"""near (float[2,4,6,5] x, {WEIGHT}) => (float[2,4,6,5] y)
        <int64[4] same = {{0, 0, 0, 0}}> {{
            a = Conv(x, w)
            b = Reshape(a, same)
            c = Relu(b)
            d = Reshape(c, same)
            y = Conv(d, w)
        }}"""
    assert seen(layouts(text, "nearest"), "b c d") == ["Tensor", "Tensor", "NCHW"]
    assert seen(layouts(text, "after"), "b c d") == ["NCHW", "NCHW", "NCHW"]


def test_bodies_see_what_is_around_them() -> None:
    record = layouts(
        f"""branches (float[2,4,6,5] x, {WEIGHT}, bool c) => (float[2,4,6,5] y) {{
            a = Relu(x)
            y = If (c) <
                then_branch = one () => (float[2,4,6,5] p) {{ p = Conv(a, w) }},
                else_branch = two () => (float[2,4,6,5] q) {{ q = Sigmoid(a) }}
            >
        }}"""
    )
    assert seen(record, "x a p q w") == ["NCHW", "NCHW", "NCHW", "NCHW", "OIHW"]


def test_kernels_are_channels_last() -> None:
    given = parse(
        """last (float[2,4,6,5] x) => (float[2,4,6,5] y)
        <float[4,4,1,1] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> { y = Conv(x, w) }"""
    )
    record = relayout.infer_layouts(optimize(given, target="nhwc-hwoi", verify=False).model)
    classes = {(tensor.layout, tensor.layout_class) for tensor in record.tensors}
    assert classes == {("NCHW", "Feature"), ("NHWC", "Feature"), ("HWOI", "Weight")}


def test_a_long_chain_takes_no_deep_stack_and_gives_the_same_twice() -> None:
    body = "\n".join(f"v{i + 1} = Relu(v{i})" for i in range(3000))
    model = parse(f"chain (float[2,3,4,5] v0) => (float[2,3,4,5] v3000) {{ {body} }}")
    record = relayout.infer_layouts(model)
    assert {tensor.layout for tensor in record.tensors} == {"NCHW"}
    assert record == relayout.infer_layouts(model)


@pytest.mark.parametrize("look", ["before", "after", "nearest"])
def test_every_tensor_of_random_graphs_has_a_layout_of_its_rank(look: str) -> None:
    for seed in range(0, 60, 2):
        model = random_graph(seed).model
        record = relayout.infer_layouts(model, look=look)
        named = {name for node in model.graph.node for name in (*node.input, *node.output) if name}
        assert {tensor.name for tensor in record.tensors} == named
        for tensor in record.tensors:
            is_named = tensor.layout_class in {"Feature", "Weight"}
            assert is_named == (tensor.layout != tensor.layout_class)
            assert not is_named or tensor.shape.count(",") + 1 == len(tensor.layout)


def test_an_unknown_way_to_look_is_refused() -> None:
    with pytest.raises(RelayoutError, match="'up'"):
        layouts(CHAIN, "up")


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "chain.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(parse(CHAIN)), path)
    return path


def test_the_command_line_prints_a_table(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(given), "--layouts"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["w", "[4,4,1,1]", "OIHW", "Weight", "backwards"] for line in lines)
    assert lines[-1] == "10 tensors: 2 Feature, 2 NTensor, 5 Tensor, 1 Weight"


def test_the_command_line_writes_json(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(given), "--layouts", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    by_name = {tensor["name"]: tensor for tensor in record["tensors"]}
    assert by_name["a"]["layout"] == "NCHW"
    assert by_name["d"] == {
        "name": "d",
        "shape": [2, 40, 3],
        "layout": "NTensor",
        "layout_class": "NTensor",
        "told": "backwards",
        "constant": False,
        "becomes": None,
    }
    assert record["conflicts"] == []
