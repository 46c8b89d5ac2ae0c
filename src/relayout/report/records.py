"""What there is to tell about a model and a run, without any graph in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PortRecord:
    name: str
    dtype: str
    shape: str


@dataclass(frozen=True, slots=True)
class TransposeRecord:
    """One Transpose on a value that is not a constant."""

    name: str
    perm: tuple[int, ...] | None
    shape: str
    bytes_moved: int
    source: str
    """What writes the value it reads."""
    readers: tuple[str, ...]
    reasons: tuple[str, ...]
    """Why its readers do not take the value as it was."""


@dataclass(frozen=True, slots=True)
class Figures:
    transposes: int
    bytes_moved: int
    nodes: int


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """What `inspect` tells."""

    path: str
    producer: str
    ir_version: int
    opsets: dict[str, int]
    inputs: tuple[PortRecord, ...]
    outputs: tuple[PortRecord, ...]
    figures: Figures
    operators: dict[str, int]
    transposes: tuple[TransposeRecord, ...]
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What `optimize` tells."""

    source: str
    output: str | None
    target: str
    before: Figures
    after: Figures
    changed: bool
    applied: dict[str, int]
    left: tuple[TransposeRecord, ...]
    notices: tuple[str, ...]
    verdict: str
    verified: bool
    seconds: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
