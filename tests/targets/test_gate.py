"""Nodes that stay as they are: by name, operator, rank or device."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest
from onnx import helper

from relayout.api import check_certificate, optimize
from relayout.cli import main
from relayout.errors import RelayoutError
from relayout.optimizer.compare import compare_strategies
from tests.rewrite.rewriting import parse
from tests.targets.networks import Network


def network() -> onnx.ModelProto:
    """Two convolutions along a plane, and one along a line; the second one runs on a CPU."""
    net = Network(3, 8, 8)
    first = net.conv("x", 4, 3)
    second = net.pool(net.conv(net.add("Relu", first), 4, 3))
    flat = net.reshape(second, 0, 4, -1)
    line = net.add("Conv", flat, net.weight(2, 4, 3))
    for node, device in ((0, "npu"), (2, "CPU")):
        net.nodes[node].metadata_props.add(key="device", value=device)
    return net.model(line, rank=3)


def kernels(*keep: str) -> list[str]:
    model = optimize(network(), target="nhwc", keep=keep).model
    return [node.op_type for node in model.graph.node if node.domain == "relayout"]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ((), ["Conv2d_B", "Conv2d_B", "MaxPool2d", "Conv1d"]),
        (("conv_0",), ["Conv2d_B", "MaxPool2d", "Conv1d"]),
        (("conv_*",), ["MaxPool2d"]),
        (("conv_0", "maxpool_?"), ["Conv2d_B", "Conv1d"]),
        (("op:Conv",), ["MaxPool2d"]),
        (("rank:3",), ["Conv2d_B", "Conv2d_B", "MaxPool2d"]),
        (("rank:4", "op:LRN"), ["Conv1d"]),
        (("device:cpu",), ["Conv2d_B", "MaxPool2d", "Conv1d"]),
        (("op:Conv", "op:MaxPool"), []),
    ],
)
def test_what_is_selected_has_no_kernel(keep: tuple[str, ...], expected: list[str]) -> None:
    assert kernels(*keep) == expected


def test_any_operator_can_be_pinned() -> None:
    """The Relu between two kernels stays in between, channels first."""
    free = optimize(network(), target="nhwc")
    kept = optimize(network(), target="nhwc", keep=["op:Relu"])
    assert kept.after.transposes == free.after.transposes + 2
    (relu,) = (node for node in kept.model.graph.node if node.op_type == "Relu")
    assert relu.name == "relu_1"


def test_a_name_that_no_node_has_is_refused() -> None:
    with pytest.raises(RelayoutError, match="no node is named 'conf_0'"):
        optimize(network(), target="nhwc", keep=["conf_0"])
    with pytest.raises(RelayoutError, match="no node is named"):
        compare_strategies(network(), keep=["conf_0"], verify=False)


def test_a_node_without_a_name_goes_by_its_result() -> None:
    model = network()
    model.graph.node[0].ClearField("name")
    kept = optimize(model, target="nhwc", keep=["conv_0"]).model
    assert Counter(node.op_type for node in kept.graph.node)["Conv"] == 1


def test_a_certificate_states_what_was_kept() -> None:
    result = optimize(network(), target="nhwc", keep=["conv_0"], verify=False)
    proof = result.certificate()
    assert proof["settings"]["keep"] == ["conv_0"]
    assert check_certificate(proof, network()) == []
    proof["settings"]["keep"] = []
    assert check_certificate(proof, network()) != []


def test_standard_onnx_can_be_pinned_too() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[1, 0]),
        helper.make_node("Relu", ["a"], ["b"], name="pinned"),
        helper.make_node("Transpose", ["b"], ["y"], perm=[1, 0]),
    ]
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (4, 5)) for n in "xy"]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert optimize(model).after.transposes == 0
    assert optimize(model, keep=["pinned"]).after.transposes == 2


def test_the_command_line(tmp_path: Path) -> None:
    source, output = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(network(), source)
    arguments = ["optimize", str(source), "--target", "nhwc", "-o", str(output)]
    assert main([*arguments, "--keep-nchw", "conv_0", "--keep-nchw", "op:MaxPool"]) == 0
    kinds = Counter(node.op_type for node in onnx.load(output).graph.node)
    assert (kinds["Conv"], kinds["MaxPool"], kinds["Conv2d_B"]) == (1, 1, 1)
    assert main([*arguments, "--keep-nchw", "nobody"]) == 2


FOLDED = {
    "MatMul": "(float[4,5] x, float[4,6] b) => (float[5,6] y) {"
    " t = Transpose<perm=[1,0]>(x) y = MatMul(t, b) }",
    "Gemm": "(float[4,5] x, float[4,6] b) => (float[5,6] y) {"
    " t = Transpose<perm=[1,0]>(x) y = Gemm(t, b) }",
    "MatMul of batches": "(float[2,4,5] x, float[2,4,6] b) => (float[2,5,6] y) {"
    " t = Transpose<perm=[0,2,1]>(x) y = MatMul(t, b) }",
    "MatMul with a vector": "(float[4,5] x, float[4] b) => (float[5] y) {"
    " t = Transpose<perm=[1,0]>(x) y = MatMul(t, b) }",
    "Einsum": "(float[2,4,5] x, float[2,4,6] b) => (float[2,5,6] y) {"
    ' t = Transpose<perm=[0,2,1]>(x) y = Einsum<equation="abc,acd->abd">(t, b) }',
}
"""Products that could take in the Transpose before them."""


@pytest.mark.parametrize("target", ["onnx", "ort"])
@pytest.mark.parametrize("case", FOLDED)
def test_no_local_rewrite_restates_what_stays(case: str, target: str) -> None:
    model = parse(f"g {FOLDED[case]}", 17)
    kept = optimize(model, target=target, minimize="count", keep=[f"op:{case.partition(' ')[0]}"])
    assert kept.after.transposes == 1
    assert kept.model.graph.node[-1] == model.graph.node[-1]
    assert optimize(model, target=target, minimize="count").after.transposes == 0


def attention() -> onnx.ModelProto:
    text = """g (float[2,5,12] x, float[2,5,12] k, float[2,5,12] v) => (float[2,5,12] y)
        <int64[4] split = {0, 0, 3, 4}, int64[3] merged = {0, 0, 12}, float scale = {0.5}> {
        a = Reshape(x, split)
        q = Transpose<perm=[0,2,1,3]>(a)
        b = Reshape(k, split)
        t = Transpose<perm=[0,2,3,1]>(b)
        c = Reshape(v, split)
        w = Transpose<perm=[0,2,1,3]>(c)
        m = MatMul(q, t)
        s = Mul(m, scale)
        p = Softmax<axis=-1>(s)
        o = MatMul(p, w)
        r = Transpose<perm=[0,2,1,3]>(o)
        y = Reshape(r, merged)
    }"""
    return parse(text, 17)


@pytest.mark.parametrize("op_type", ["MatMul", "Softmax", "Mul"])
def test_an_attention_of_which_a_part_stays_is_not_raised(op_type: str) -> None:
    given = attention()

    def statements(*keep: str) -> Counter[str]:
        result = optimize(given, target="ort", keep=keep, verify=False)
        return Counter(node.op_type for node in result.model.graph.node)

    assert statements()["MultiHeadAttention"] == 1
    assert statements(f"op:{op_type}")[op_type] == (2 if op_type == "MatMul" else 1)


def test_a_selector_that_selects_nothing_is_reported() -> None:
    notices = optimize(network(), keep=["op:LRN", "op:Conv"], verify=False).record().notices
    assert [note for note in notices if "selected" in note] == ["no node is selected by 'op:LRN'"]
