"""Which entries a resized axis takes, by ONNX and by LiteRT, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relayout.backends.litert.flat_graph import FlatData


@dataclass(frozen=True, slots=True)
class Sampling:
    transform: str
    rounding: str
    mode: str
    cubic: float


def coordinates(length: int, target: int, stretch: float, sampling: Sampling) -> FlatData:
    """Where on the given axis each entry of the resized one lies."""
    # Runtimes work in this precision, which decides where a place lies between two entries.
    places, scale = np.arange(target, dtype=np.float32), np.float32(stretch)
    match sampling.transform:
        case "asymmetric":
            return places / scale
        case "align_corners":
            return places * (length - 1) / (target - 1) if target > 1 else np.zeros(target)
        case "pytorch_half_pixel":
            return (places + 0.5) / scale - 0.5 if target > 1 else np.zeros(target)
        case "half_pixel_symmetric":
            adjusted = target / (scale * length)
            offset = length / 2 * (1 - adjusted)
            return offset + (places + 0.5) / scale - 0.5
        case _:
            return (places + 0.5) / scale - 0.5


def nearest(length: int, target: int, scale: float, sampling: Sampling) -> FlatData:
    """The places that ONNX takes."""
    where = coordinates(length, target, scale, sampling)
    match sampling.rounding:
        case "floor":
            found = np.floor(where)
        case "ceil":
            found = np.ceil(where)
        case "round_prefer_ceil":
            found = np.floor(where + 0.5)
        case _:
            found = np.ceil(where - 0.5)
    return np.asarray(found.clip(0, length - 1), np.int64)


def builtin_nearest(length: int, target: int, align: bool, half: bool) -> FlatData:
    """The places that LiteRT's builtin takes."""
    scale = np.float32(length / max(target, 1))
    if align and target > 1:
        scale = np.float32((length - 1) / (target - 1))
    where = (np.arange(target, dtype=np.float32) + np.float32(0.5 if half else 0.0)) * scale
    found = np.floor(where + np.float32(0.5)) if align else np.floor(where)
    return np.asarray(found.clip(0, length - 1), np.int64)


def matrix(length: int, target: int, scale: float, sampling: Sampling) -> FlatData:
    """How much each given entry counts in each entry of the resized axis."""
    where = coordinates(length, target, scale, sampling)
    if sampling.mode == "linear":
        where = where.clip(0, length - 1)
    low = np.floor(where).astype(np.int64)
    part = where - low
    weights = np.zeros((target, length))
    rows = np.arange(target)
    for offset, share in _shares(part, sampling):
        np.add.at(weights, (rows, (low + offset).clip(0, length - 1)), share)
    return weights


def _shares(part: FlatData, sampling: Sampling) -> list[tuple[int, FlatData]]:
    if sampling.mode == "linear":
        return [(0, 1 - part), (1, part)]
    a = sampling.cubic
    return [
        (-1, _far(part + 1, a)),
        (0, _near(part, a)),
        (1, _near(1 - part, a)),
        (2, _far(2 - part, a)),
    ]


def _near(x: FlatData, a: float) -> FlatData:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _far(x: FlatData, a: float) -> FlatData:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
