"""Constants spread over a tensor: short runs have a price, by which orders are chosen."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import relayout
from relayout.graph.io.load import load
from relayout.graph.region import regions_of
from relayout.layout.permutation import Permutation
from relayout.targets.ort_broadcasts import parted_broadcast
from relayout.targets.prices.table import shipped
from tests.rewrite.rewriting import parse

PRICES = shipped("onnxruntime_x86_64")
LAST, FIRST = Permutation.of(0, 1, 2, 3), Permutation.of(0, 3, 1, 2)

SPREAD = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,32,48,{channels}] x) => (float[A,B,C,D] y) {{ y = {operator} }}
"""


def runs(operator: str, shape: tuple[int, ...], order: Permutation, channels: int = 3) -> int:
    model = parse(SPREAD.format(operator=operator, channels=channels))
    model.graph.initializer.append(from_array(np.ones(shape, np.float32), "c"))
    region = next(iter(regions_of(load(model).ir)))
    found = parted_broadcast(region.view(next(iter(region.graph))), order)
    return 0 if found is None else found.nanoseconds(PRICES, {})


@pytest.mark.parametrize("operator", ["Add(x, c)", "Sub(x, c)", "Mul(x, c)", "Div(x, c)"])
@pytest.mark.parametrize("shape", [(3,), (1, 1, 1, 3)])
def test_a_number_for_each_channel(operator: str, shape: tuple[int, ...]) -> None:
    assert runs(operator, shape, LAST) == PRICES.runs(32 * 48)
    assert runs(operator, shape, FIRST) == 0


@pytest.mark.parametrize(
    ("operator", "shape", "last", "first"),
    [
        ("Add(x, c)", (48, 1), 32 * 48, 0),
        ("Add(x, c)", (48, 3), 0, 0),
        ("Add(x, c)", (32, 1, 1), 0, 0),
        ("Add(x, c)", (), 0, 0),
        ("Add(x, c)", (1,), 0, 0),
        ("Add(x, c)", (1, 32, 48, 3), 0, 0),
        ("Add(c, x)", (3,), 0, 0),
        ("Max(x, c)", (3,), 0, 0),
    ],
)
def test_others(operator: str, shape: tuple[int, ...], last: int, first: int) -> None:
    assert (runs(operator, shape, LAST), runs(operator, shape, FIRST)) == (
        PRICES.runs(last),
        PRICES.runs(first),
    )


IMAGES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,64,64,{channels}] x) => (float[A,B,C,D] y) {{
    m = Mul(x, c)
    a = Add(m, c)
    t = Transpose<perm = [0, 3, 1, 2]>(a)
    y = Conv(t, w)
}}
"""


def test_many_channels_make_long_runs() -> None:
    assert runs("Add(x, c)", (15,), LAST, channels=15) == PRICES.runs(32 * 48)
    assert runs("Add(x, c)", (16,), LAST, channels=16) == 0


def images(channels: int) -> onnx.ModelProto:
    """Images that are scaled channels last, and convolved channels first."""
    model = parse(IMAGES.format(channels=channels))
    arrays = {"c": np.ones(channels), "w": np.ones((8, channels, 3, 3))}
    model.graph.initializer.extend(
        from_array(array.astype(np.float32), name) for name, array in arrays.items()
    )
    return model


@pytest.mark.parametrize(("minimize", "first"), [("time", "Transpose"), ("bytes", "Mul")])
def test_images_are_scaled_in_the_order_with_long_runs(minimize: str, first: str) -> None:
    result = relayout.optimize(images(3), target="ort", minimize=minimize)
    nodes = [node.op_type for node in result.model.graph.node]
    assert nodes[0] == first
    assert nodes.count("Transpose") == 1
