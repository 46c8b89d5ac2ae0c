"""Names that new nodes get: those of the nodes they succeed, or of what they serve."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.editing.naming import name_transposes
from relayout.graph.names import Names
from relayout.graph.region import regions_of
from relayout.layout.permutation import Permutation

SWAP = Permutation.of(1, 0)
GRAPH = """<ir_version: 10, opset_import: ["" : 21]>
g (float[4,4] x) => (float[4,4] y, float[4,4] z) {
    [first] a, b = Split<num_outputs=2>(x)
    [second] c = Concat<axis=0>(a, b)
    d = Relu(b)
    [third] y = Add(c, d)
    [fourth] z = Neg(y)
}"""


def edited() -> tuple[ir.Model, Editor, dict[str, ir.Node]]:
    model = ir.from_proto(onnx.parser.parse_model(GRAPH))
    (region,) = regions_of(model)
    nodes = {node.name or node.op_type: node for node in region.graph}
    return model, Editor(region, Names.of(model)), nodes


def maker_of(value: ir.Value) -> ir.Node:
    maker = value.producer()
    assert maker is not None
    return maker


def test_one_that_feeds_one_operand() -> None:
    model, editor, nodes = edited()
    moved = editor.transposed(nodes["first"].outputs[1], SWAP, before=nodes["second"])
    editor.read(nodes["second"], 1, moved)
    name_transposes(model)
    assert maker_of(moved).name == "second_transpose_input_1"


def test_one_consumer_that_reads_it_twice() -> None:
    model, editor, nodes = edited()
    moved = editor.transposed(nodes["first"].outputs[1], SWAP, before=nodes["second"])
    editor.read(nodes["second"], 1, moved)
    editor.read(nodes["second"], 0, moved)
    name_transposes(model)
    assert maker_of(moved).name == "second_transpose_input_0"


def test_a_consumer_without_a_name_is_called_by_its_result() -> None:
    model, editor, nodes = edited()
    moved = editor.transposed(nodes["first"].outputs[1], SWAP, before=nodes["Relu"])
    editor.read(nodes["Relu"], 0, moved)
    name_transposes(model)
    assert maker_of(moved).name == "d_transpose_input_0"


def test_one_that_serves_several_consumers() -> None:
    model, editor, nodes = edited()
    moved = editor.transposed(nodes["first"].outputs[1], SWAP, before=nodes["second"])
    editor.read(nodes["second"], 1, moved)
    editor.read(nodes["Relu"], 0, moved)
    name_transposes(model)
    assert maker_of(moved).name == "first_transpose_output_1"


def test_one_that_restores_an_output_of_the_graph() -> None:
    model, editor, nodes = edited()
    old = nodes["fourth"].outputs[0]
    moved = editor.transposed(old, SWAP, before=None)
    model.graph.outputs[1] = moved
    name_transposes(model)
    assert maker_of(moved).name == "fourth_transpose_output_0"


def test_several_consumers_of_an_input() -> None:
    model, editor, nodes = edited()
    moved = editor.transposed(model.graph.inputs[0], SWAP, before=nodes["first"])
    editor.read(nodes["first"], 0, moved)
    editor.read(nodes["Relu"], 0, moved)
    name_transposes(model)
    assert maker_of(moved).name == "x_transpose"


def test_names_are_made_unique_and_stay_when_given_again() -> None:
    model, editor, nodes = edited()
    nodes["fourth"].name = "second_transpose_input_1"
    moved = editor.transposed(nodes["first"].outputs[1], SWAP, before=nodes["second"])
    editor.read(nodes["second"], 1, moved)
    for _ in range(2):
        name_transposes(model)
        assert maker_of(moved).name == "second_transpose_input_1_1"


def test_a_given_transpose_keeps_its_name() -> None:
    model = ir.from_proto(
        onnx.parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 21]>
            g (float[2,3] x) => (float[3,2] y) {
                [mine] t = Transpose<perm=[1,0]>(x)
                [other] y = Relu(t)
            }"""
        )
    )
    name_transposes(model)
    assert [node.name for node in model.graph] == ["mine", "other"]


def test_the_name_goes_to_the_node_that_is_left_in_the_end() -> None:
    """Also where what stood for the node first is gone before the node itself."""
    for first_gone in (0, 1):
        _, editor, nodes = edited()
        given = nodes["fourth"]
        chain = [given]
        for _ in range(2):
            (result,) = editor.adapted(chain[-1], chain[-1].inputs, [chain[-1].outputs[0].shape])
            chain.append(maker_of(result))
        editor.substitute(given.outputs[0], chain[-1].outputs[0], origin=given)
        for node in chain[:2] if first_gone == 0 else chain[1::-1]:
            editor.discard(node)
        assert chain[-1].name == "fourth"


def test_a_node_that_stays_keeps_its_name_and_its_copy_has_another() -> None:
    _, editor, nodes = edited()
    (copy,) = editor.adapted(nodes["third"], nodes["third"].inputs, [None])
    assert maker_of(copy).name == "third_1"
    assert nodes["third"].name == "third"
