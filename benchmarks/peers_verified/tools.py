"""Other tools that make a model of a model, each as it comes."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

Tool = Callable[[onnx.ModelProto], onnx.ModelProto]


def _onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim  # noqa: PLC0415 - a tool that is judged need not be installed

    made, _ = onnxsim.simplify(model)
    return _message(made)


def _onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim  # noqa: PLC0415

    return _message(onnxslim.slim(model))


def _onnxoptimizer(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxoptimizer  # noqa: PLC0415

    return _message(onnxoptimizer.optimize(model))


def _onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxscript import optimizer  # noqa: PLC0415

    return _message(optimizer.optimize(model))


def _message(made: Any) -> onnx.ModelProto:
    assert isinstance(made, onnx.ModelProto)
    return made


def _runtime(level: str) -> Tool:
    def saved(model: onnx.ModelProto) -> onnx.ModelProto:
        import onnxruntime as ort  # noqa: PLC0415

        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "saved.onnx"
            options.optimized_model_filepath = str(path)
            ort.InferenceSession(model.SerializeToString(), options)
            return onnx.load(path)

    return saved


def _tf2onnx(model: onnx.ModelProto) -> onnx.ModelProto:
    from tf2onnx.graph import GraphUtil  # noqa: PLC0415

    return _message(GraphUtil.optimize_model_proto(model))


ALL: dict[str, tuple[tuple[str, ...], Tool]] = {
    "onnxsim": (("onnxsim",), _onnxsim),
    "onnxslim": (("onnxslim",), _onnxslim),
    "onnxoptimizer": (("onnxoptimizer",), _onnxoptimizer),
    "onnxscript": (("onnxscript",), _onnxscript),
    "ort-basic": (("onnxruntime",), _runtime("ORT_ENABLE_BASIC")),
    "ort-extended": (("onnxruntime",), _runtime("ORT_ENABLE_EXTENDED")),
    "tf2onnx": (("tf2onnx", "tensorflow"), _tf2onnx),
}
"""By name, the packages that each needs and what it does."""

INSTALLED = {
    name: tool
    for name, (packages, tool) in ALL.items()
    if all(importlib.util.find_spec(package) for package in packages)
}
