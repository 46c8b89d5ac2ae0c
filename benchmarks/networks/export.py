"""Modules as ONNX models, by either exporter of torch."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import onnx
import torch

from benchmarks.networks.families import Example

EXPORTERS = ("script", "dynamo")
OPSETS = {"script": 17, "dynamo": 18}


def exported(example: Example, exporter: str, opset: int = 0) -> onnx.ModelProto:
    """The model as one of torch's exporters writes it."""
    settings: dict[str, Any] = {"opset_version": opset or OPSETS[exporter]}
    settings["dynamo"] = exporter == "dynamo"
    if exporter == "dynamo":
        settings["verbose"] = False
    # The fused operator of encoders has no form in ONNX.
    torch.backends.mha.set_fastpath_enabled(False)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        file = Path(folder) / "model.onnx"
        torch.onnx.export(example.module.eval(), example.inputs, str(file), **settings)
        return onnx.load(file)


def exported_by_either(example: Example, first: str) -> onnx.ModelProto:
    """The model as an exporter writes it, or where that cannot, as the other does."""
    try:
        return exported(example, first)
    except Exception as error:  # noqa: BLE001 - exporters raise what they like
        print(f"exporter {first!r}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        (other,) = (each for each in EXPORTERS if each != first)
        return exported(example, other)
