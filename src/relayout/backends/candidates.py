"""What a backend can make of a model, so that it can be timed beside what others make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from relayout.backends.options import CompileOptions
from relayout.graph.io.model import LoadedModel


class CompiledModel(Protocol):
    """Call it with numpy arrays or tensors, by name or in order: a dict of outputs in kind."""

    def __call__(self, *arguments: Any, **named: Any) -> dict[str, Any]: ...


BuildWay: TypeAlias = Callable[[LoadedModel, str, CompileOptions, Path], Path]
"""Writes what one way makes of a model into a folder; a `RelayoutError` says why it cannot."""

OpenWay: TypeAlias = Callable[[Path, CompileOptions], CompiledModel]
"""Makes what was written ready to be called, in any process."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The ways in which a backend can run a model, the one it prefers first."""

    ways: tuple[str, ...]
    build: BuildWay
    open: OpenWay
