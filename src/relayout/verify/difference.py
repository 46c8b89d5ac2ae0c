"""How two results of a model differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# The largest error allowed, relative to the largest magnitude of the output.
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 1e-2,
    "bfloat16": 3e-2,
    "float8_e4m3fn": 0.13,
    "float8_e4m3fnuz": 0.13,
    "float8_e5m2": 0.25,
    "float8_e5m2fnuz": 0.25,
}


@dataclass(frozen=True)
class Difference:
    """The largest error, relative to the scale of the first result, and where it is.

    `exact`: all bytes are equal; `alike`: structure, type and shape are. The error is
    infinite where no tolerance could excuse the difference.
    """

    elements: int = 0
    exact: bool = True
    alike: bool = True
    error: float = 0.0
    allowed: float = 0.0
    place: str = ""
    index: tuple[int, ...] = ()
    before: str = ""
    after: str = ""

    @property
    def excused(self) -> bool:
        return self.alike and self.error <= self.allowed


def difference(before: Any, after: Any, tolerance: float | None = None) -> Difference:
    """Compares tensors, or sequences, maps and optionals of them part by part."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        before, after = _listed(before), _listed(after)
    if isinstance(before, list) and isinstance(after, list):
        return _of_lists(before, after, tolerance)
    if before is None and after is None:
        return Difference()
    if any(value is None or isinstance(value, list | Mapping) for value in (before, after)):
        return _unlike(type(before).__name__, type(after).__name__)
    return _of_arrays(np.asarray(before), np.asarray(after), tolerance)


def worse(left: Difference, right: Difference) -> Difference:
    """The one with the larger error, speaking for the elements of both."""
    chosen = left if _badness(left) >= _badness(right) else right
    return replace(
        chosen, elements=left.elements + right.elements, exact=left.exact and right.exact
    )


def _badness(found: Difference) -> tuple[bool, bool, float]:
    return not found.alike, not found.excused, found.error


def _listed(mapping: Mapping[Any, Any]) -> list[Any]:
    return [np.array(list(mapping)), np.array(list(mapping.values()))]


def _of_lists(before: list[Any], after: list[Any], tolerance: float | None) -> Difference:
    if len(before) != len(after):
        return _unlike(f"{len(before)} parts", f"{len(after)} parts")
    total = Difference()
    for i, pair in enumerate(zip(before, after, strict=True)):
        part = difference(*pair, tolerance)
        total = worse(total, replace(part, place=f"[{i}]{part.place}"))
    return total


def _of_arrays(before: Array, after: Array, tolerance: float | None) -> Difference:
    if before.dtype.name != after.dtype.name and not {before.dtype.kind, after.dtype.kind} <= {
        *"OU"
    }:
        return _unlike(before.dtype.name, after.dtype.name)
    if before.shape != after.shape:
        return _unlike(f"shape {list(before.shape)}", f"shape {list(after.shape)}")
    if _same_bytes(before, after):
        return Difference(elements=before.size)
    errors, allowed = _errors(before, after, tolerance)
    worst = int(np.argmax(errors))
    index = tuple(int(i) for i in np.unravel_index(worst, before.shape))
    return Difference(
        elements=before.size,
        exact=False,
        error=float(errors.flat[worst]),
        allowed=allowed,
        index=index,
        before=_text(before[index]),
        after=_text(after[index]),
    )


def _unlike(before: str, after: str) -> Difference:
    return Difference(exact=False, alike=False, error=math.inf, before=before, after=after)


def _same_bytes(before: Array, after: Array) -> bool:
    if before.dtype.kind in "OU":
        return bool(np.array_equal(before, after))
    return before.tobytes() == after.tobytes()


def _errors(before: Array, after: Array, tolerance: float | None) -> tuple[Array, float]:
    """The error of each element relative to the scale, and how large it may be."""
    if before.dtype.name not in TOLERANCES:
        return np.where(before == after, 0.0, np.inf), 0.0
    wide = np.complex128 if before.dtype.kind == "c" else np.float64
    old, new = before.astype(wide), after.astype(wide)
    finite = np.abs(old[np.isfinite(old)])
    scale = float(finite.max(initial=0.0)) or 1.0
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(same, 0.0, np.abs(old - new) / scale)
    errors = np.where(np.isnan(errors), np.inf, errors)
    return errors, TOLERANCES[before.dtype.name] if tolerance is None else tolerance


def _text(element: Any) -> str:
    if isinstance(element, str | bytes):
        return repr(element)
    return str(element)
