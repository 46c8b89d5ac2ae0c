"""Built models in a process of their own: opened by the name of their backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from relayout.backends.candidates import Candidates, CompiledModel
from relayout.backends.fastest.ranking import RunWay
from relayout.backends.options import CompileOptions
from relayout.backends.registry import BACKENDS
from relayout.errors import RelayoutError


def candidates_of(name: str) -> Candidates:
    """The ways of a backend."""
    found = BACKENDS[name].candidates
    if found is None:
        raise RelayoutError(f"models of {name} are not timed beside those of other backends")
    return found


def open_way(way: RunWay, path: Path, options: CompileOptions) -> CompiledModel:
    return candidates_of(way.backend).open(path, options)


def options_as_json(options: CompileOptions) -> dict[str, Any]:
    """The settings that opening depends on; inputs are sent apart."""
    return asdict(replace(options, inputs=None))


def options_of(data: Mapping[str, Any]) -> CompileOptions:
    return CompileOptions(**data)
