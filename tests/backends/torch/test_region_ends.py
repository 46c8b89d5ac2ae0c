"""Regions of C++ kernels end at operators that these lack: they are named, with what they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest

pytest.importorskip("torch")

from relayout.backends.torch.choose.settings import TuningSettings
from relayout.backends.torch.providers.library_provider import LibraryProvider
from relayout.backends.torch.providers.native_provider import NativeProvider
from relayout.backends.torch.providers.native_region import native_failure
from relayout.backends.torch.providers.prices import Price, Prices
from relayout.backends.torch.providers.provider import Candidate
from relayout.backends.torch.providers.registry import EAGER_PROVIDER
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import Work
from relayout.backends.torch.region_ends import RegionEnd, region_ends
from tests.rewrite.rewriting import parse

MODEL = """
    g (float[1,8,16,16] x, float[16,8,3,3] w, float[16,16,3,3] v) => (float[1,16,16,16] y) {
      a = Conv<pads=[1,1,1,1]>(x, w)
      b = Relu(a)
      c = Erf(b)
      d = Conv<pads=[1,1,1,1]>(c, v)
      y = Relu(d) }"""


def native_first(_work: Work, candidates: Sequence[Candidate], _site: Site) -> list[Price]:
    """As if C++ kernels were faster than all else."""
    return [Price(1e-6 if each.name == "native" else 1e-3) for each in candidates]


PROVIDERS = (NativeProvider(), LibraryProvider(), EAGER_PROVIDER)
SETTINGS = TuningSettings(PROVIDERS, native_first, Prices("here"))


def test_an_operator_that_kernels_lack_is_named(tmp_path: Path) -> None:
    if native_failure() is not None:
        pytest.skip("C++ kernels cannot be built here")
    model = parse(MODEL, 17)
    for name, shape in (("w", (16, 8, 3, 3)), ("v", (16, 16, 3, 3))):
        (given,) = (value for value in model.graph.input if value.name == name)
        model.graph.input.remove(given)
        size = shape[0] * shape[1] * 9
        model.graph.initializer.append(
            onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, shape, [0.01] * size)
        )
    path = tmp_path / "in.onnx"
    onnx.save(model, path)
    found = region_ends(path, {}, SETTINGS)
    assert (found.regions, found.inside, found.nodes) == (2, 4, 5)
    assert found.ends == (RegionEnd("Erf", 1, 1.0),)
