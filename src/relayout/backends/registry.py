"""The backends by name: how a result is run, each with the target that it is optimised for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from relayout.backends.options import CompileOptions
from relayout.graph.io.sources import ModelSource
from relayout.registry.registry import Registry
from relayout.targets.target import TORCH, Target

Compiler: TypeAlias = Callable[[ModelSource, CompileOptions], Any]
"""From a model to a callable that does what it does."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to run models; what it needs is imported when it is first used."""

    name: str
    target: Target
    home: str
    """The module with its `compile_model`, which takes a model and `CompileOptions`."""
    summary: str = ""

    @property
    def compiler(self) -> Compiler:
        compiler: Compiler = import_module(self.home).compile_model
        return compiler


TORCH_BACKEND = Backend(
    TORCH.name, TORCH, "relayout.backends.torch.compiling", "PyTorch, on a CPU or a CUDA device"
)

BACKENDS: Registry[Backend] = Registry(
    "backend", "relayout.backends", {TORCH_BACKEND.name: TORCH_BACKEND}
)
