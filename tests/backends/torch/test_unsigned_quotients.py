"""Whole numbers without a sign are divided as such, up to the largest of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing


def _numbers(dtype: Any) -> tuple[Any, Any]:
    """Small ones, large ones, and those next to powers of two, each with each."""
    top = np.iinfo(dtype).max
    edges = [1, 2, 3, 7, top // 2 - 1, top // 2, top // 2 + 1, top // 2 + 2, top - 1, top]
    drawn = np.random.default_rng(11).integers(1, top, 40, dtype=dtype)
    small = np.random.default_rng(12).integers(1, 1000, 20, dtype=dtype)
    divisors = np.concatenate([np.array(edges, dtype), drawn, small])
    return np.append(divisors, dtype(0))[:, None], divisors


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("operator", ["Div", "Mod", "Mod<fmod = 1>"])
def test_quotients_and_remainders(dtype: Any, operator: str) -> None:
    a, b = _numbers(dtype)
    kind = np.dtype(dtype).name
    text = f"""<ir_version: 9, opset_import: ["" : 20]>
    g ({kind}[N,1] a, {kind}[M] b) => ({kind}[N,M] y) {{ y = {operator}(a, b) }}"""
    compiled = relayout.compile(onnx.parser.parse_model(text), tune=False, verify=False)
    wanted = a // b if operator == "Div" else a % b
    found = compiled(a, b)["y"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
