"""How two results of a model differ, element by element."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relayout.verify.pools import Pools

Array = npt.NDArray[Any]
Noise = Any
"""By element, how much of a difference is rounding: an array, or a list of them; None: nothing."""

# The largest error that other ways to compute a model may make, relative to an element's scale.
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
# What the order of a few sums changes; beyond it a model must show such errors by itself.
STRICT = TOLERANCES | {"float64": 1e-14, "complex128": 1e-14, "float32": 2e-6, "complex64": 2e-6}
# A model that changes by more of an element's scale than this does not round: it decides. Of a
# model that has decisions to make, even less is taken for rounding.
MOST_NOISE = 2e-2
MOST_NOISE_OF_DECISIONS = 0.0
# An error up to this many times what a model shows by itself is rounding.
NOISE_FACTOR = 4.0


@dataclass(frozen=True)
class Difference:
    """The largest error, relative to the scale of its element, and where it is.

    `exact`: all bytes are equal; `alike`: structure, type and shape are; `excused`: no element
    differs by more than it may. The error is infinite where no tolerance could excuse it.
    """

    elements: int = 0
    exact: bool = True
    alike: bool = True
    excused: bool = True
    error: float = 0.0
    allowed: float = 0.0
    place: str = ""
    index: tuple[int, ...] = ()
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Tolerance:
    """How much results may differ: by type relative to the scale, or as the caller says."""

    by_type: Mapping[str, float]
    asked: float | None = None

    def of(self, dtype: np.dtype[Any]) -> float:
        return self.by_type[dtype.name] if self.asked is None else self.asked


USUAL = Tolerance(TOLERANCES)


def difference(
    before: Any, after: Any, tolerance: Tolerance = USUAL, noise: Noise = None
) -> Difference:
    """Compares tensors, or sequences, maps and optionals of them part by part."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        before, after = _listed(before), _listed(after)
    if isinstance(before, list) and isinstance(after, list):
        return _of_lists(before, after, tolerance, noise)
    if before is None and after is None:
        return Difference()
    if any(value is None or isinstance(value, list | Mapping) for value in (before, after)):
        return _unlike(type(before).__name__, type(after).__name__)
    return _of_arrays(np.asarray(before), np.asarray(after), tolerance, noise)


def worse(left: Difference, right: Difference) -> Difference:
    """The one with the larger error, speaking for the elements of both."""
    chosen = left if _badness(left) >= _badness(right) else right
    return replace(
        chosen, elements=left.elements + right.elements, exact=left.exact and right.exact
    )


def widened(
    noise: Noise, before: Any, other: Any, most: float = MOST_NOISE, whole: float = 0.0
) -> Noise:
    """The noise once another result of the same model on almost the same inputs is known.

    An element that changes by more than `most` of its scale, or than the tolerance of its type,
    excuses nothing, not even its neighbours; where no decisions are made, what is left of a
    difference of larger numbers may be all rounding: of those around it, or of `whole`.
    """
    if isinstance(before, list) and isinstance(other, list):
        known = noise if isinstance(noise, list) else [None] * len(before)
        if len(before) != len(other):
            return noise
        return [widened(*part, most, whole) for part in zip(known, before, other, strict=True)]
    if not (_is_float(before) and _is_float(other)) or before.shape != other.shape:
        return noise
    old, new = _wide(before), _wide(other)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(old - new)
    apart = np.where(np.isfinite(apart), apart, 0.0)
    pools = Pools.of(old)
    limit = max(most, TOLERANCES[before.dtype.name]) * pools.scale(old)
    if most >= MOST_NOISE:
        around = np.maximum(pools.around(old), whole)
        limit = np.maximum(limit, STRICT[before.dtype.name] * around)
    apart = np.where(apart <= limit, apart, 0.0)
    return apart if noise is None else np.maximum(noise, apart)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.name in TOLERANCES


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _badness(found: Difference) -> tuple[bool, bool, float]:
    return not found.alike, not found.excused, found.error


def _listed(mapping: Mapping[Any, Any]) -> list[Any]:
    return [np.array(list(mapping)), np.array(list(mapping.values()))]


def _of_lists(
    before: list[Any], after: list[Any], tolerance: Tolerance, noise: Noise
) -> Difference:
    if len(before) != len(after):
        return _unlike(f"{len(before)} parts", f"{len(after)} parts")
    known = noise if isinstance(noise, list) else [None] * len(before)
    total = Difference()
    for i, (one, other, own) in enumerate(zip(before, after, known, strict=True)):
        part = difference(one, other, tolerance, own)
        total = worse(total, replace(part, place=f"[{i}]{part.place}"))
    return total


def _of_arrays(before: Array, after: Array, tolerance: Tolerance, noise: Noise) -> Difference:
    if before.dtype.name != after.dtype.name and not {before.dtype.kind, after.dtype.kind} <= {
        *"OU"
    }:
        return _unlike(before.dtype.name, after.dtype.name)
    if before.shape != after.shape and not _of_no_rounds(before.shape, after.shape):
        return _unlike(f"shape {list(before.shape)}", f"shape {list(after.shape)}")
    if _same_bytes(before, after):
        return Difference(elements=before.size)
    errors, allowed = _errors(before, after, tolerance, noise)
    failing = errors > allowed
    worst = int(np.argmax(np.where(failing, errors, -1.0) if failing.any() else errors))
    index = tuple(int(i) for i in np.unravel_index(worst, before.shape))
    return Difference(
        elements=before.size,
        exact=False,
        excused=not failing.any(),
        error=float(errors.flat[worst]),
        allowed=float(allowed.flat[worst]),
        index=index,
        before=_text(before[index]),
        after=_text(after[index]),
    )


def _of_no_rounds(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether both are what rounds gave that there were none of.

    The other lengths of such are what a runtime can infer of the body, or what that claims, and 0,
    or left out, where it finds nothing: no standard says what they are. A second model of which
    more or less is known is no other function; two lengths that are both known and differ are.
    """
    if before[:1] != (0,) or after[:1] != (0,):
        return False
    if 1 in (len(before), len(after)):
        return True
    pairs = zip(before, after, strict=False)
    return len(before) == len(after) and all(0 in (a, b) or a == b for a, b in pairs)


def _unlike(before: str, after: str) -> Difference:
    unlike = Difference(exact=False, alike=False, excused=False, error=math.inf)
    return replace(unlike, before=before, after=after)


def _same_bytes(before: Array, after: Array) -> bool:
    if before.dtype.kind in "OU":
        return bool(np.array_equal(before, after))
    return before.tobytes() == after.tobytes()


def _errors(before: Array, after: Array, tolerance: Tolerance, noise: Noise) -> tuple[Array, Array]:
    """The error of each element relative to its scale, and how large it may be."""
    if before.dtype.name not in TOLERANCES:
        return np.where(before == after, 0.0, np.inf), np.zeros(before.shape)
    old, new = _wide(before), _wide(after)
    pools = Pools.of(old)
    scale = pools.scale(old)
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(same, 0.0, np.abs(old - new) / scale)
    errors = np.where(np.isnan(errors), np.inf, errors)
    allowed = np.full(before.shape, tolerance.of(before.dtype))
    if noise is not None:
        allowed = np.maximum(allowed, NOISE_FACTOR * pools.shared(noise) / scale)
    return errors, allowed


def _text(element: Any) -> str:
    if isinstance(element, str | bytes):
        return repr(element)
    return str(element)
