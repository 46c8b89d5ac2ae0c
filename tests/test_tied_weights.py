"""Constants with several readers are stored once where that costs nothing, and growth is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relayout.api import check_certificate, optimize
from relayout.cli import main
from tests.rewrite.rewriting import assert_same_numbers

ROWS, COLUMNS = 40, 30
BYTES = ROWS * COLUMNS * 4


def tied(rank: int) -> onnx.ModelProto:
    """A table that Gather reads as it is and MatMul transposed, as tied embeddings are exported."""
    index, result = [2] * (rank - 1), [2] * (rank - 1) + [ROWS]
    nodes = [
        helper.make_node("Gather", ["w", "i"], ["e"]),
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["e", "t"], ["y"]),
    ]
    table = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) % 7
    graph = helper.make_graph(
        nodes,
        "tied",
        [helper.make_tensor_value_info("i", TensorProto.INT64, index)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(table, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("target", ["onnx", "ort", "nhwc"])
def test_a_product_that_can_read_the_weight_as_stored_does_so(target: str) -> None:
    given = tied(rank=2)
    result = optimize(given, target=target, minimize="bytes")
    assert result.record().constant_bytes == (BYTES, BYTES)
    assert not any("two orders" in notice for notice in result.record().notices)
    assert not any(node.op_type == "Transpose" for node in result.model.graph.node)
    assert check_certificate(result.certificate(), given, result.model) == []


def test_what_is_stored_twice_is_reported() -> None:
    record = optimize(tied(rank=3)).record()
    assert record.constant_bytes == (BYTES, 2 * BYTES)
    assert any(f"constants take {BYTES} bytes more" in notice for notice in record.notices)
    assert record.to_json()["constant_bytes"] == (BYTES, 2 * BYTES)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("minimize", ["bytes", "count"])
def test_keep_size_stores_nothing_twice(rank: int, minimize: str) -> None:
    given = tied(rank)
    result = optimize(given, minimize=minimize, keep_size=True)
    assert result.record().constant_bytes == (BYTES, BYTES)
    assert_same_numbers(given, result.model, exact=False)
    document = result.certificate()
    assert document["settings"]["keep_size"] is True
    assert check_certificate(document, given, result.model) == []


def test_the_command_line_has_it(tmp_path: Path) -> None:
    given, output = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(tied(rank=3), given)
    assert main(["optimize", str(given), "-o", str(output), "--keep-size"]) == 0
    assert output.stat().st_size < 1.5 * BYTES
    assert main(["optimize", str(given), "-o", str(output)]) == 0
    assert output.stat().st_size > 1.5 * BYTES


def summed(*nodes: onnx.NodeProto, outputs: dict[str, list[int]]) -> onnx.ModelProto:
    """Nodes that read the input x and the constant c, which a product reads as it is."""
    shared = np.arange(16 * 20, dtype=np.float32).reshape(16, 20)
    value = helper.make_tensor_value_info
    shapes = {**outputs, "v": [16, 20]}
    graph = helper.make_graph(
        [*nodes, helper.make_node("Mul", ["u", "c"], ["v"])],
        "summed",
        [value("x", TensorProto.FLOAT, [20, 16]), value("u", TensorProto.FLOAT, [16, 20])],
        [value(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [numpy_helper.from_array(shared, "c")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_among_choices_that_move_the_same_one_that_stores_less_is_taken() -> None:
    """Before or after the sum: one Transpose; only one of the two leaves the constant as it is."""
    given = summed(
        helper.make_node("Transpose", ["c"], ["ct"], perm=[1, 0]),
        helper.make_node("Add", ["x", "ct"], ["s"]),
        helper.make_node("Transpose", ["s"], ["y"], perm=[1, 0]),
        outputs={"y": [16, 20]},
    )
    result = optimize(given)
    assert result.after.transposes == 1
    assert result.record().constant_bytes == (1280, 1280)
    assert check_certificate(result.certificate(), given, result.model) == []


def test_a_transpose_is_saved_for_a_second_constant_unless_that_is_forbidden() -> None:
    given = summed(
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Add", ["t", "c"], ["s"]),
        helper.make_node("Transpose", ["s"], ["z"], perm=[1, 0]),
        helper.make_node("Relu", ["s"], ["y"]),
        outputs={"z": [20, 16], "y": [16, 20]},
    )
    free, kept = optimize(given).record(), optimize(given, keep_size=True).record()
    assert (free.after.transposes, free.constant_bytes) == (1, (1280, 2560))
    assert (kept.after.transposes, kept.constant_bytes) == (2, (1280, 1280))
