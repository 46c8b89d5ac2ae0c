"""The backends by name: how a result is run, each with the target that it is optimised for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, TypeAlias

from relayout.backends.candidates import Candidates
from relayout.backends.options import Compilation, CompileOptions
from relayout.graph.io.sources import ModelSource
from relayout.optimizer.delivery import Stage
from relayout.registry.registry import Registry
from relayout.targets.target import LITERT, OPENVINO, ORT, TORCH, Target

Compiler: TypeAlias = Callable[[ModelSource, CompileOptions], Any]
"""From a model to a callable that does what it does."""

ModuleWriter: TypeAlias = Callable[[ModelSource, str, CompileOptions, Stage], Compilation]
"""From a model to files that do what it does."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to run models; what it needs is imported when it is first used."""

    name: str
    target: Target
    home: str
    """The module with its `compile_model` and `write_module`."""
    summary: str = ""
    package: str = ""
    """The package that it needs; none is always there."""
    suffix: str = ".py"
    """Of the file that it writes."""

    @property
    def is_installed(self) -> bool:
        return not self.package or find_spec(self.package) is not None

    def require(self) -> None:
        """Refuse with the command that installs the package, if it is not there."""
        import_module(self.home)

    @property
    def version(self) -> str:
        """The version of the package, if one of its name was installed."""
        try:
            return version(self.package) if self.package else ""
        except PackageNotFoundError:
            return "unknown"

    @property
    def candidates(self) -> Candidates | None:
        """The ways that can be timed beside those of other backends, for any lengths."""
        found: Candidates | None = getattr(import_module(self.home), "CANDIDATES", None)
        return found

    @property
    def compiler(self) -> Compiler:
        compiler: Compiler = import_module(self.home).compile_model
        return compiler

    @property
    def writer(self) -> ModuleWriter:
        writer: ModuleWriter = import_module(self.home).write_module
        return writer


TORCH_BACKEND = Backend(
    TORCH.name,
    TORCH,
    "relayout.backends.torch.compiling",
    "PyTorch, on a CPU or a CUDA device",
    "torch",
)

LITERT_BACKEND = Backend(
    LITERT.name,
    LITERT,
    "relayout.backends.litert.compiling",
    "LiteRT: a .tflite file",
    "ai_edge_litert",
    suffix=".tflite",
)

ORT_BACKEND = Backend(
    ORT.name,
    ORT,
    "relayout.backends.ort.compiling",
    "ONNX Runtime, on a CPU",
    "onnxruntime",
    suffix=".onnx",
)

OPENVINO_BACKEND = Backend(
    OPENVINO.name,
    OPENVINO,
    "relayout.backends.openvino.compiling",
    "OpenVINO, on a CPU",
    "openvino",
    suffix=".onnx",
)

BACKENDS: Registry[Backend] = Registry(
    "backend",
    "relayout.backends",
    {
        backend.name: backend
        for backend in (TORCH_BACKEND, LITERT_BACKEND, ORT_BACKEND, OPENVINO_BACKEND)
    },
)


def register_backend(backend: Backend) -> None:
    """Let a backend be asked for by its name."""
    BACKENDS.register(backend.name, backend)
