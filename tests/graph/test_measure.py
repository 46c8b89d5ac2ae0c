"""What counts as bytes moved."""

from __future__ import annotations

import onnx.parser
import pytest

from relayout.graph.io.load import load
from relayout.ops.measure import measure

SIZE = 2 * 3 * 4 * 5 * 4


def bytes_moved(body: str, opset: int = 13, shape: str = "2,3,4,5") -> int:
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g (float[{shape}] x) => (float[{shape}] y) {{ {body} }}"""
    return measure(load(onnx.parser.parse_model(text)).ir).bytes_moved


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_rows_that_are_not_consecutive_in_memory_are_copied_twice(name: str) -> None:
    assert bytes_moved(f"y = {name}<axis=1>(x)") == 2 * 2 * SIZE
    assert bytes_moved(f"y = {name}<axis=-2>(x)") == 2 * 2 * SIZE
    assert bytes_moved(f"y = {name}<axis=3>(x)") == 0
    assert bytes_moved(f"y = {name}(x)") == 0


def test_unit_axes_do_not_matter() -> None:
    assert bytes_moved("y = Softmax<axis=1>(x)", shape="2,60,1,1") == 0


def test_early_softmax_takes_all_later_axes_together() -> None:
    assert bytes_moved("y = Softmax<axis=1>(x)", opset=11) == 0


def test_as_much_as_the_transposes_in_its_place() -> None:
    spelt_out = """
        t = Transpose<perm=[0,2,3,1]>(x)
        s = Softmax<axis=-1>(t)
        y = Transpose<perm=[0,3,1,2]>(s)"""
    assert bytes_moved(spelt_out) == bytes_moved("y = Softmax<axis=1>(x)")


OPEN = """<ir_version: 8, opset_import: ["" : 13]>
g (float[n,3] x) => (float[3,RESULT] y) { y = Transpose(x) }"""


@pytest.mark.parametrize(
    ("result", "dims", "length"),
    [("n", {}, 32), ("n", {"n": 5}, 5), ("m", {"n": 5}, 5), ("m", {"m": 5}, 32)],
)
def test_an_open_length_counts_as_it_is_known(
    result: str, dims: dict[str, int], length: int
) -> None:
    """As the operand has it, whatever the result is called."""
    model = load(onnx.parser.parse_model(OPEN.replace("RESULT", result))).ir
    assert measure(model, dims).bytes_moved == 2 * 4 * 3 * length
