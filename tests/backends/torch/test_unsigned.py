"""Unsigned numbers wider than bytes, for which torch lacks much, are picked like others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import relayout

PLACES = np.array([[2, 0, -1, 1]])
PICKS: dict[str, Callable[[Any], Any]] = {
    "Gather<axis = 0>(x, two)": lambda x: x[[2, 0]],
    "Gather<axis = 1>(x, two)": lambda x: x[:, [2, 0]],
    "Gather<axis = 1>(x, last)": lambda x: x[:, [-1]],
    "GatherElements<axis = 0>(x, places)": lambda x: np.take_along_axis(x, PLACES, 0),
}


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64", "int16", "float"])
def test_elements_are_picked(pick: str, kind: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 19]>
        g ({kind}[3,4] x) => ({kind}[p,q] y)
        <int64[2] two = {{2, 0}}, int64[1] last = {{-1}}, int64[1,4] places = {{2, 0, -1, 1}}>
        {{ y = {pick} }}"""
    )
    x = np.arange(12).reshape(3, 4).astype("float32" if kind == "float" else kind)
    compiled = relayout.compile(model, tune=False, verify=False)
    (found,) = compiled({"x": x}).values()
    np.testing.assert_array_equal(np.asarray(found), PICKS[pick](x))
