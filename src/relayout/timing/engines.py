"""The runtimes that models are timed in: ONNX Runtime and, where it is installed, OpenVINO.

With one thread both run on the thread that calls them, so that the time of that thread on its core
is all they take, whatever else the machine does.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from relayout.errors import RelayoutError
from relayout.registry.registry import Registry

Feeds: TypeAlias = Mapping[str, Any]
"""The values of inputs by name."""
RunModel: TypeAlias = Callable[[Feeds], object]
"""Runs a model once."""
ModelFile: TypeAlias = "Path | bytes"
"""A file, or the message in it."""

SILENT = 4
STOP_SPINNING = "session.force_spinning_stop"


@dataclass(frozen=True, slots=True)
class Engine:
    """A runtime on this machine's CPU, with its default settings."""

    name: str
    package: str
    opens: Callable[[ModelFile, int], RunModel]
    summary: str = ""

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        return str(import_module(self.package).__version__)

    def open(self, model: ModelFile, threads: int = 1) -> RunModel:
        """A model that is ready to run; it and its calls raise `EngineError`."""
        if not self.is_installed:
            raise RelayoutError(
                f"{self.summary} is not installed; `pip install {self.package}` installs it"
            )
        run: RunModel = _guarded(self.opens, model, threads)
        return lambda feeds: _guarded(run, feeds)


class EngineError(Exception):
    """A runtime does not load a model, or does not run it on some inputs."""


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    # Runtimes raise exceptions of any class.
    try:
        return function(*arguments)
    except Exception as error:
        raise EngineError(" ".join(str(error).split())[:300] or type(error).__name__) from error


def ort_session(model: ModelFile, threads: int) -> Any:
    """A session of ONNX Runtime."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    # Threads that wait for more work would take it from what runs next.
    options.add_session_config_entry(STOP_SPINNING, "1")
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _open_onnxruntime(model: ModelFile, threads: int) -> RunModel:
    session = ort_session(model, threads)
    return lambda feeds: session.run(None, dict(feeds))


def openvino_model(model: ModelFile, threads: int) -> Any:
    """A model that OpenVINO has compiled."""
    openvino = import_module("openvino")
    core = openvino.Core()
    read = core.read_model(io.BytesIO(model) if isinstance(model, bytes) else str(model))
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    return core.compile_model(read, "CPU", settings)


def _open_openvino(model: ModelFile, threads: int) -> RunModel:
    request = openvino_model(model, threads).create_infer_request()
    return lambda feeds: request.infer(dict(feeds), share_inputs=True, share_outputs=True)


ONNX_RUNTIME_ENGINE = Engine("ort", "onnxruntime", _open_onnxruntime, "ONNX Runtime")
OPENVINO_ENGINE = Engine("openvino", "openvino", _open_openvino, "OpenVINO")

ENGINES: Registry[Engine] = Registry(
    "engine",
    "relayout.engines",
    {engine.name: engine for engine in (ONNX_RUNTIME_ENGINE, OPENVINO_ENGINE)},
)
