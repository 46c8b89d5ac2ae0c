"""What is saved is what was given, but for the edit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from onnx.backend.test.loader import load_model_tests

from relayout.errors import RelayoutError
from relayout.graph.io.load import load
from relayout.graph.io.save import save, staged, to_proto
from tests.graph.difference import difference
from tests.graph.makers import complete, model, node, relu, take_out_pair, value, write


def node_named(graph: ir.Graph, name: str) -> ir.Node:
    return next(item for item in graph if item.name == name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_backend_models_come_back_equal() -> None:
    count = 0
    for case in load_model_tests(kind="node")[::3]:
        given = case.model
        assert given is not None
        before = given.SerializeToString(deterministic=True)
        result = to_proto(load(given))
        assert result.SerializeToString(deterministic=True) == before, case.name
        assert given.SerializeToString(deterministic=True) == before, case.name
        count += 1
    assert count > 500


def test_the_complete_model_is_complete() -> None:
    """Every kind of field that can be lost is there, so that the tests below mean something."""
    given = complete()
    graph = given.graph
    set_fields = {field.name for field, _ in given.ListFields()}
    assert set_fields == {field.name for field in onnx.ModelProto.DESCRIPTOR.fields}
    set_in_graph = {field.name for field, _ in graph.ListFields()}
    assert set_in_graph == {field.name for field in onnx.GraphProto.DESCRIPTOR.fields}
    assert any(line.endswith("unknown fields") for line in difference(given, onnx.ModelProto()))


def test_nothing_is_lost_without_an_edit() -> None:
    given = complete()
    loaded = load(given)
    assert loaded.frozen is None
    result = to_proto(loaded)
    assert list(difference(given, result)) == []
    assert result.SerializeToString(deterministic=True) == given.SerializeToString(
        deterministic=True
    )


def test_nothing_is_lost_in_a_clone() -> None:
    given = complete()
    loaded = load(given)
    loaded.editable = loaded.ir.clone()
    assert list(difference(given, to_proto(loaded))) == []


def test_the_difference_is_exactly_the_edit() -> None:
    given = complete()
    loaded = load(given)
    take_out_pair(loaded)
    result = to_proto(loaded)
    expected = onnx.ModelProto()
    expected.CopyFrom(given)
    del expected.graph.node[:2]
    expected.graph.node[0].input[0] = "x"
    expected.graph.node[0].device_configurations[0].sharding_spec[0].tensor_name = "x"
    del expected.graph.value_info[0]
    del expected.graph.quantization_annotation[0]
    assert list(difference(expected, result)) == []


def test_changed_attributes_and_names_are_written() -> None:
    given = complete()
    loaded = load(given)
    transpose = node_named(loaded.ir.graph, "Transpose_a")
    transpose.attributes["perm"] = ir.AttrInt64s("perm", [0, 1])
    transpose.attributes["extra"] = ir.AttrInt64("extra", 3)
    transpose.outputs[0].name = "renamed"
    transpose.metadata_props["new"] = "entry"
    expected = onnx.ModelProto()
    expected.CopyFrom(given)
    graph = expected.graph
    graph.node[0].output[0] = graph.node[1].input[0] = "renamed"
    graph.node[0].attribute[0].ints[:] = [0, 1]
    graph.node[0].attribute.append(helper.make_attribute("extra", 3))
    graph.node[0].metadata_props.add(key="new", value="entry")
    del graph.value_info[0]
    graph.value_info.append(value("renamed", [3, "N"]))
    graph.value_info[-1].type.tensor_type.shape.dim[1].denotation = "DATA_BATCH"
    del graph.quantization_annotation[0]
    assert list(difference(expected, to_proto(loaded))) == []


def test_new_nodes_and_constants_are_written() -> None:
    given = complete()
    loaded = load(given)
    graph = loaded.ir.graph
    add = node_named(graph, "Add_c")
    constant = ir.Value(name="fresh", const_value=ir.tensor(np.ones((2, 3), np.float32)))
    graph.register_initializer(constant)
    product = ir.Value(
        name="product", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["N", 3])
    )
    new = ir.node("Mul", [add.inputs[0], constant], outputs=[product], name="new")
    new.metadata_props["origin"] = "Add_c"
    graph.insert_before(add, new)
    add.replace_input_with(0, product)
    loaded.ir.opset_imports["com.example"] = 1
    result = to_proto(loaded)
    assert [item.name for item in result.graph.node][2:4] == ["new", "Add_c"]
    assert list(result.graph.node[2].input) == ["b", "fresh"]
    assert result.graph.node[2].metadata_props[0].value == "Add_c"
    assert result.graph.initializer[-1].name == "fresh"
    assert result.graph.value_info[-1] == value("product", ["N", 3])
    assert result.opset_import[-1].domain == "com.example"
    assert [item.name for item in result.graph.initializer][:4] == [
        item.name for item in given.graph.initializer
    ]


def test_new_values_are_recorded_only_where_values_are() -> None:
    given = model([node("Transpose", "x", "a", perm=[1, 0]), node("Relu", "a", "y")])
    loaded = load(given)
    loaded.ir.graph.node(0).outputs[0].name = "renamed"
    assert not to_proto(loaded).graph.value_info


def test_symbols_made_up_by_inference_are_not_written() -> None:
    nodes = [node("NonZero", "x", "a"), node("Cast", "a", "b", to=1), node("Relu", "b", "y")]
    given = model(nodes)
    given.graph.value_info.append(value("b", [2, "unk__0"]))
    loaded = load(given)
    loaded.ir.graph.node(1).outputs[0].name = "renamed"
    record = to_proto(loaded).graph.value_info[0]
    assert record.name == "renamed"
    assert not record.type.tensor_type.shape.dim[1].HasField("dim_param")


def test_edits_inside_bodies_and_functions() -> None:
    given = complete()
    loaded = load(given)
    branch = next(item for item in loaded.ir.graph if item.op_type == "If")
    body = branch.attributes["then_branch"].as_graph()
    body.initializers["t_w"].const_value = ir.tensor(np.zeros(3, np.float32))
    body.node(-1).attributes["mark"] = ir.AttrInt64("mark", 1)
    inner = loaded.ir.functions["local", "twice", ""].graph.node(0)
    inner.attributes["mark"] = ir.AttrInt64("mark", 1)
    places = [line.split(":")[0] for line in difference(given, to_proto(loaded))]
    assert places == [
        "graph.node[7].attribute[1].g.node[1].attribute",
        "graph.node[7].attribute[1].g.initializer[0].float_data",
        "graph.node[7].attribute[1].g.initializer[0].raw_data",
        "functions[0].node[0].attribute",
    ]


def test_attributes_onnx_ir_cannot_hold_move_with_new_nodes() -> None:
    given = complete()
    loaded = load(given)
    graph = loaded.ir.graph
    old = next(
        item
        for item in graph
        if item.op_type == "Constant"
        and "sparse_value" in item.attributes
        and item.outputs[0].name == "k"
    )
    new = ir.Node("", "Constant", [], list(old.attributes.values()), num_outputs=1, name="moved")
    new.outputs[0].name = "moved_k"
    graph.insert_before(old, new)
    written = next(item for item in to_proto(loaded).graph.node if item.name == "moved")
    assert written.attribute[0] == given.graph.node[6].attribute[0]


def test_a_changed_interface_is_never_written() -> None:
    loaded = load(relu())
    loaded.ir.graph.inputs[0].name = "other"
    with pytest.raises(ValueError, match="interface"):
        to_proto(loaded)


# files


def test_an_unchanged_model_is_copied_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    twice = b"\x08\x03"  # ir_version once more: parsed, but never written like this
    path.write_bytes(twice + complete().SerializeToString())
    save(load(path), tmp_path / "out.onnx", changed=False)
    assert (tmp_path / "out.onnx").read_bytes() == path.read_bytes()


def test_a_changed_model_replaces_its_own_file(tmp_path: Path) -> None:
    path = write(complete(), tmp_path / "in.onnx")
    loaded = load(path)
    take_out_pair(loaded)
    save(loaded, path, changed=True)
    assert onnx.load(path) == to_proto(loaded)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_and_stays(tmp_path: Path, there: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.onnx", tmp_path / "out.onnx"
    if there:
        real.write_text("older")
        real.chmod(0o600)
    link.symlink_to(real)
    save(load(relu()), link, changed=False)
    assert link.is_symlink()
    assert onnx.load(real) == relu()
    assert [path.name for path in real.parent.iterdir()] == ["real.onnx"]
    assert not there or real.stat().st_mode & 0o777 == 0o600


def test_what_is_not_committed_leaves_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    with staged(load(relu()), target, changed=True) as stage:
        assert onnx.load(stage.path) == relu()
        assert stage.path.parent == tmp_path
        assert not target.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise OSError("disk full")

    def verify_badly() -> None:
        with staged(load(relu()), tmp_path / "out.onnx", changed=True):
            raise ArithmeticError("the numbers differ")

    with pytest.raises(ArithmeticError):
        verify_badly()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("relayout.graph.io.save.synchronise", fail)
    with pytest.raises(RelayoutError, match=r"cannot write '.*out\.onnx': disk full"):
        save(load(relu()), tmp_path / "out.onnx", changed=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["", "missing/out.onnx"])
def test_a_target_where_no_file_can_be(tmp_path: Path, target: str) -> None:
    with pytest.raises(RelayoutError, match=r"its folder does not exist|it is a folder"):
        save(load(relu()), tmp_path / target, changed=True)


def test_other_forms_are_chosen_by_suffix(tmp_path: Path) -> None:
    given = model([node("Transpose", "x", "y", perm=[1, 0])])
    save(load(write(given, tmp_path / "in.onnx")), tmp_path / "text.textproto", changed=False)
    assert (tmp_path / "text.textproto").read_text().startswith("ir_version")
    assert load(tmp_path / "text.textproto").source == given


def test_the_same_edit_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write(complete(), tmp_path / "in.onnx")
    written = []
    for name in ("one.onnx", "two.onnx"):
        loaded = load(path)
        take_out_pair(loaded)
        save(loaded, tmp_path / name, changed=True)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


def test_data_too_large_for_a_message_goes_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relayout.graph.io.save.LARGEST_IN_MEMORY", 2000)
    loaded = load(
        model([node("Add", "x w", "y")], initializers=[helper.make_tensor("w", 1, [1], [1.0])])
    )
    array = np.arange(1024, dtype=np.float32)
    loaded.ir.graph.initializers["w"].const_value = ir.tensor(array)
    save(loaded, tmp_path / "out.onnx", changed=True)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out.onnx", "out.onnx.data"]
    result = onnx.load(tmp_path / "out.onnx")
    assert np.array_equal(onnx.numpy_helper.to_array(result.graph.initializer[0]), array)
