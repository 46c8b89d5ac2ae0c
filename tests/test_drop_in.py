"""relayout called as other tools are."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

import relayout
from relayout import RelayoutError
from relayout.cli.demo_model import network

GIVEN = 9
"""With the one of a constant."""


def transposes(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "Transpose" for node in model.graph.node)


def test_simplify_is_called_as_that_of_onnxsim() -> None:
    simplified, checked = relayout.simplify(
        network(), 3, test_input_shapes={"image": [2, 16, 16, 3]}
    )
    assert checked
    assert transposes(simplified) == 1
    assert transposes(network()) == GIVEN


def test_simplify_reads_files_and_takes_our_options(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "in.onnx")
    simplified, _ = relayout.simplify(tmp_path / "in.onnx", free_inputs=True, verify=False)
    assert transposes(simplified) == 0


def test_simplify_refuses_what_it_does_not_do() -> None:
    with pytest.raises(RelayoutError, match="does not change the shapes of inputs"):
        relayout.simplify(network(), overwrite_input_shapes={"image": [1, 16, 16, 3]})
    with pytest.raises(RelayoutError, match="count"):
        relayout.simplify(network(), -1)


def test_a_pass_stands_in_a_sequence() -> None:
    given = ir.from_proto(network())
    result = ir.passes.Sequential(relayout.LayoutPass(verify=False), relayout.LayoutPass())(given)
    assert result.modified
    assert transposes(ir.to_proto(result.model)) == 1
    assert transposes(ir.to_proto(given)) == GIVEN
    assert repr(relayout.LayoutPass(minimize="count")) == "LayoutPass(minimize='count')"


def test_a_result_is_a_small_card_in_notebooks() -> None:
    card = relayout.optimize(network(), verify=False)._repr_html_()
    assert "<td>8</td><td>1</td>" in card
    assert len(card) < 1000


def test_the_graphs_of_a_result_are_shown_on_demand() -> None:
    page = relayout.optimize(network(), verify=False).page()
    frame = page._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts" ')
    assert frame.count("<") == len(("<iframe", "</iframe")), "what the page holds is text in it"
    assert "transpose_0" in frame
    assert repr(page) == "<Page a model>"


def test_a_node_is_explained_by_its_name_or_by_what_it_writes() -> None:
    (node,) = relayout.explain_node(network(), "transpose_0")
    assert node.op_type == "Transpose"
    assert node.bytes_moved > 0
    assert any("wanted by" in line for line in node.why)
    (written,) = relayout.explain_node(network(), node.writes[0].name)
    assert written == node
    with pytest.raises(RelayoutError, match="no node is called 'nobody'"):
        relayout.explain_node(network(), "nobody")
    with pytest.raises(RelayoutError, match=r"near it: transpose_\d"):
        relayout.explain_node(network(), "transpose_99")


def test_a_string_where_a_list_is_meant_is_refused() -> None:
    with pytest.raises(RelayoutError, match="list"):
        relayout.optimize(network(), keep="op:Conv")
