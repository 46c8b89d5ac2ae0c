"""Every family of networks runs in torch as it does elsewhere, and as a module by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.backends.torch.networks import FAMILIES
from tests.ops import law

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.backends.options import CompileOptions  # noqa: E402
from relayout.backends.torch.compiling import write_module  # noqa: E402

TOLERANCE = 2e-5
PLAIN = CompileOptions(tune=False)
REDUCED = {"float16": 1e-2, "bfloat16": 6e-2}
WHOLE_RESULTS = ("detection", "control")
"""Families in which rounding can turn into other indices or another number of steps."""

ALONE = """
import importlib, sys
import numpy as np
sys.modules["relayout"] = sys.modules["onnx"] = None
for name in sys.argv[1:]:
    with np.load(f"{name}.in.npz") as feeds:
        outputs = importlib.import_module(name).load()(dict(feeds))
    np.savez(f"{name}.out.npz", *outputs.values())
"""
"""Runs written modules where nothing but torch can be imported."""


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def expected(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    return law.run(model, feeds, "ort")


def test_compiled_network_gives_the_same_numbers(family: str) -> None:
    model, feeds = FAMILIES[family]()
    outputs = relayout.compile(model, verify=False)(feeds)
    assert list(outputs) == [value.name for value in model.graph.output]
    for (name, got), wanted in zip(outputs.items(), expected(model, feeds), strict=True):
        law.compare(name, wanted, got, TOLERANCE)


def test_tensors_in_give_tensors_out_for_any_strides(family: str) -> None:
    model, feeds = FAMILIES[family]()
    compiled = relayout.compile(model, verify=False)
    tensors = {name: torch.from_numpy(array) for name, array in feeds.items()}
    strided = {
        name: tensor.mT.contiguous().mT for name, tensor in tensors.items() if tensor.dim() > 1
    }
    outputs = compiled(tensors | strided)
    for (name, got), wanted in zip(outputs.items(), expected(model, feeds), strict=True):
        assert isinstance(got, torch.Tensor)
        law.compare(name, wanted, got.numpy(), TOLERANCE)


@pytest.mark.parametrize("dtype", REDUCED)
def test_reduced_types_keep_the_interface_and_stay_close(family: str, dtype: str) -> None:
    if family in WHOLE_RESULTS:
        pytest.skip("what is rounded here decides what is counted")
    model, feeds = FAMILIES[family]()
    wanted = expected(model, feeds)
    outputs = relayout.compile(model, dtype=dtype, verify=False)(feeds).values()
    for got, reference in zip(outputs, wanted, strict=True):
        assert got.dtype == reference.dtype
        if got.dtype.kind == "f":
            scale = np.abs(reference).max()
            assert np.abs(got - reference).max() <= REDUCED[dtype] * scale


def test_written_modules_need_neither_relayout_nor_onnx(tmp_path: Path) -> None:
    wanted = {}
    for name, make in FAMILIES.items():
        model, feeds = make()
        files = write_module(model, tmp_path / f"{name}.py", PLAIN).files
        assert [file.name for file in files] == [f"{name}.py", f"{name}.safetensors"]
        np.savez(tmp_path / f"{name}.in.npz", allow_pickle=False, **feeds)
        wanted[name] = expected(model, feeds)
    subprocess.run([sys.executable, "-c", ALONE, *FAMILIES], cwd=tmp_path, check=True)
    for name, results in wanted.items():
        with np.load(tmp_path / f"{name}.out.npz") as outputs:
            for output, result in zip(outputs, results, strict=True):
                law.compare(f"{name} {output}", result, outputs[output], TOLERANCE)


def test_the_same_model_gives_the_same_module(family: str, tmp_path: Path) -> None:
    model, _ = FAMILIES[family]()
    texts = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        files = write_module(model, tmp_path / name / "written.py", PLAIN).files
        texts.append([file.read_bytes() for file in files])
    assert texts[0] == texts[1]
