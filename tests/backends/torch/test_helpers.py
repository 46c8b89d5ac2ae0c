"""Helpers that are written into modules: all of them in one namespace."""

from __future__ import annotations

import inspect
import pkgutil
from collections import defaultdict
from importlib import import_module
from types import FunctionType

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from benchmarks.judge.running import ORT, run  # noqa: E402
from relayout.backends.torch import runtime  # noqa: E402
from relayout.backends.torch.modules.helpers import closure  # noqa: E402
from relayout.backends.torch.runtime.numbers import quotient  # noqa: E402
from relayout.graph.invariants import InvariantError  # noqa: E402


def test_no_two_helpers_have_one_name() -> None:
    homes = defaultdict(set)
    for module in pkgutil.iter_modules(runtime.__path__, f"{runtime.__name__}."):
        for name, item in vars(import_module(module.name)).items():
            if inspect.isfunction(item) or inspect.isclass(item):
                homes[name].add(item.__module__)
    own = {name: found for name, found in homes.items() if min(found).startswith("relayout.")}
    assert len(own) > 100
    assert {name: found for name, found in own.items() if len(found) > 1} == {}


def test_helpers_of_one_name_are_refused() -> None:
    other = FunctionType((lambda a, b: a - b).__code__, globals(), quotient.__name__)
    with pytest.raises(InvariantError, match="quotient"):
        closure([quotient, other])


def test_quotients_of_whole_numbers_and_of_places_are_apart() -> None:
    """Both were called alike once, and one of them was written for both."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        both (float[1,2,5,7] x, int64[4] a, int64[4] b) => (float[N,C,H,W] y, int64[4] z)
        <float[8] roi = {0, 0, 0.25, 0.5, 1, 1, 0.75, 1}, float[4] scales = {1, 1, 0.8, 1.5}>
        { y = Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">(
            x, roi, scales)
          z = Div(a, b) }"""
    )
    drawn = np.random.default_rng(0)
    feeds = {"x": drawn.standard_normal((1, 2, 5, 7), np.float32)}
    feeds |= {"a": np.array([7, -7, 7, -7]), "b": np.array([2, 2, -2, -2])}
    wanted = run(model, feeds, ORT)
    found = relayout.compile(model, tune=False, verify=False)(feeds).values()
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(np.asarray(other), one, rtol=1e-5, atol=1e-6)
