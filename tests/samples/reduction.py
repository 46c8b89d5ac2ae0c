"""Samples of operators that reduce axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relayout.ops.reduction import REDUCTIONS
from tests.samples.sample import Array, Sample, counting, ints, small, unit, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

_KNOWN = frozenset({1})
_ROUNDED = {"ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd"}


def _data(op_type: str, *shape: int) -> Array:
    if op_type in {"ReduceLogSum", "ReduceProd"}:
        return unit(*shape)
    return small(*shape) if op_type == "ReduceSumSquare" else counting(*shape)


def _tolerance(op_type: str) -> float:
    """Sums and extrema of integers are exact in any order; the others are not."""
    return 1e-5 if op_type in _ROUNDED else 0.0


def _axes_are_operand(op_type: str, version: int) -> bool:
    return version >= (13 if op_type == "ReduceSum" else 18)


def _reduce(
    op_type: str, version: int, x: Array, axes: list[int] | None, **attributes: int
) -> Sample:
    """One way of naming the axes, in the form of the version."""
    note = f"{axes}{attributes}".replace(" ", "").replace("'", "")
    common: dict[str, Any] = {"note": note, "tolerance": _tolerance(op_type)}
    if axes is None:
        return Sample(op_type, version, [x], attributes, **common)
    if _axes_are_operand(op_type, version):
        return Sample(op_type, version, [x, ints(*axes)], attributes, _KNOWN, **common)
    return Sample(op_type, version, [x], {**attributes, "axes": axes}, **common)


def _of_version(op_type: str, version: int) -> Iterator[Sample]:
    x = _data(op_type, 2, 3, 4, 5)
    for keepdims in (0, 1):
        yield _reduce(op_type, version, x, [1], keepdims=keepdims)
        yield _reduce(op_type, version, x, [3, 1], keepdims=keepdims)
        yield _reduce(op_type, version, x, None, keepdims=keepdims)
    yield _reduce(op_type, version, x, [2])
    yield _reduce(op_type, version, x, [0, 1, 2, 3], keepdims=0)
    if version >= 11:
        yield _reduce(op_type, version, x, [-1, -3], keepdims=0)


def _of_operand_form(op_type: str, version: int) -> Iterator[Sample]:
    x = _data(op_type, 2, 3, 4, 5)
    for keepdims in (0, 1):
        yield _reduce(op_type, version, x, [], keepdims=keepdims)
        for axes in ([], None, [2]):
            yield _reduce(op_type, version, x, axes, keepdims=keepdims, noop_with_empty_axes=1)
    tolerance = _tolerance(op_type)
    for named in (ints(1), ints(-1, 1), ints()):
        yield Sample(op_type, version, [x, named], note=f"{named}-run-time", tolerance=tolerance)
    dropped = {"keepdims": 0}
    yield Sample(op_type, version, [x, ints(1)], dropped, admits=0, note="dropped-at-run-time")


def _reductions() -> Iterator[Sample]:
    for op_type in sorted(name for facts in REDUCTIONS for name in facts.op_types):
        for version in versions(op_type):
            yield from _of_version(op_type, version)
            if _axes_are_operand(op_type, version):
                yield from _of_operand_form(op_type, version)


def _others() -> Iterator[Sample]:
    yield _reduce("ReduceSum", 13, counting(2, 3, 4, 5, 6), [2, -1], keepdims=0)
    yield _reduce("ReduceMax", 11, counting(2, 3, 4, 5, 6), [1, 2], keepdims=0)
    yield _reduce("ReduceMin", 20, counting(3, 3, 3, 3), [1, 2], keepdims=0)
    yield _reduce("ReduceMax", 20, counting(3, 4) > 5, [0], keepdims=0)
    yield _reduce("ReduceMean", 18, counting(2, 3, 4), [0, 2], keepdims=0)


def _searches() -> Iterator[Sample]:
    x = counting(2, 3, 4, 5)
    for op_type in ("ArgMax", "ArgMin"):
        for version in versions(op_type):
            for keepdims in (0, 1):
                for axis in (0, 2) if version < 11 else (0, 2, -1, -3):
                    attributes = {"axis": axis, "keepdims": keepdims}
                    yield Sample(op_type, version, [x], attributes, note=f"{axis}-{keepdims}")
            yield Sample(op_type, version, [x])
            yield Sample(op_type, version, [small(3, 3, 3, 3)], {"axis": 1}, note="ties")
        last = {"axis": 1, "select_last_index": 1, "keepdims": 0}
        yield Sample(op_type, 13, [small(3, 3, 3, 3)], last, note="last-of-ties")
        yield Sample(op_type, 13, [counting(2, 3, 4, 5, 6)], {"axis": 3, "keepdims": 0})


SAMPLES = [*_reductions(), *_others(), *_searches()]
