"""Samples of operators that read or write at given indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.samples.sample import Array, Sample, counting, ints, small, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

_KNOWN = frozenset({1})


def _picks(*shape: int, below: int, dtype: Any = np.int64) -> Array:
    """Indices from 0 up, some of them alike."""
    return small(*shape, dtype=dtype, low=0, high=below)


def _gathers() -> Iterator[Sample]:
    x = counting(2, 3, 4, 5)
    for version in versions("Gather"):
        for indices in (np.asarray(1), ints(2, 0), _picks(2, 3, below=3), _picks(1, 2, 2, below=3)):
            for axis in (1, 2):
                yield Sample("Gather", version, [x, indices], {"axis": axis}, note=f"axis{axis}")
            yield Sample("Gather", version, [x, indices], {"axis": 3}, _KNOWN, note="const")
        yield Sample("Gather", version, [x, ints(1, 0, 1)], note="default")
        if version >= 11:
            yield Sample("Gather", version, [x, ints(-1, 0)], {"axis": -2}, note="negative")
    yield Sample(
        "Gather", 13, [counting(3, 3, 3), _picks(3, 3, below=3)], {"axis": 1}, note="alike"
    )
    yield Sample("Gather", 13, [counting(2, 3, 4, 5, 6), _picks(2, 2, below=4)], {"axis": 2})


def _element_reads() -> Iterator[Sample]:
    x = counting(2, 3, 4, 5)
    for version in versions("GatherElements"):
        yield Sample("GatherElements", version, [x, _picks(2, 6, 4, 5, below=3)], {"axis": 1})
        constant = [x, _picks(2, 3, 4, 2, below=5) - 5]
        yield Sample("GatherElements", version, constant, {"axis": 3}, _KNOWN, note="const")
        yield Sample("GatherElements", version, [x, _picks(3, 3, 4, 5, below=2)], note="default")
    smaller = [x, _picks(1, 2, 4, 3, below=4)]
    yield Sample("GatherElements", 13, smaller, {"axis": -2}, runtime="ort", note="smaller")


def _element_writes() -> Iterator[Sample]:
    """The indices repeat along the axis: there the last write wins, in every order."""
    x, updates = counting(2, 3, 4, 5), -counting(2, 2, 3, 5)
    for version in versions("ScatterElements"):
        operands = [x, _picks(2, 2, 3, 5, below=4), updates]
        yield Sample("ScatterElements", version, operands, {"axis": 2})
        negative = [x, _picks(2, 2, 3, 5, below=3) - 3, updates]
        yield Sample("ScatterElements", version, negative, {"axis": -3}, _KNOWN, note="negative")
        first = [x, _picks(2, 2, 3, 5, below=2), updates]
        yield Sample("ScatterElements", version, first, note="default")
    for version, reductions in ((16, ("add", "mul")), (18, ("add", "mul", "max", "min"))):
        for reduction in reductions:
            operands = [x, _picks(2, 2, 3, 5, below=4), small(2, 2, 3, 5)]
            attributes = {"axis": 2, "reduction": reduction}
            yield Sample("ScatterElements", version, operands, attributes, note=reduction)
    cube = [counting(3, 3, 3), _picks(3, 3, 3, below=3), -counting(3, 3, 3)]
    yield Sample("ScatterElements", 18, cube, {"axis": 1}, note="alike")
    for version in versions("Scatter"):
        operands = [x, _picks(2, 2, 3, 5, below=4), updates]
        yield Sample("Scatter", version, operands, {"axis": 2}, runtime="ort")
        first = [x, _picks(2, 2, 3, 5, below=2), updates]
        yield Sample("Scatter", version, first, runtime="ort", note="default")


def _tuples(*outer: int, lengths: tuple[int, ...]) -> Array:
    """Index tuples into axes of these lengths."""
    return np.stack([_picks(*outer, below=length) for length in lengths], axis=-1)


def _tuple_reads() -> Iterator[Sample]:
    """Indices, shared axes, and how many orders constant and run-time indices admit."""
    x = counting(2, 3, 4, 5)
    cases: list[tuple[Array, int, int, int]] = [
        (_tuples(6, lengths=(2,)), 0, 5, 5),
        (_tuples(6, 7, lengths=(2, 3)), 0, 3, 1),
        (_tuples(6, lengths=(2, 3, 4)), 0, 5, 0),
        (_tuples(6, lengths=(2, 3, 4, 5)), 0, 23, 0),
        (ints(1, 2), 0, 3, 3),
        (_tuples(2, 6, lengths=(3,)), 1, 1, 1),
        (_tuples(2, lengths=(3, 4)), 1, 1, 0),
        (_tuples(2, 3, lengths=(4,)), 2, 0, 0),
        (_tuples(2, 3, lengths=(4, 5)), 2, 1, 0),
    ]
    for version in versions("GatherND"):
        for indices, batch, known, given in cases:
            if batch and version < 12:
                continue
            common: dict[str, Any] = {"attributes": {"batch_dims": batch} if batch else {}}
            operands, note = [x, indices], f"batch{batch}"
            yield Sample("GatherND", version, operands, admits=given, note=note, **common)
            yield Sample(
                "GatherND",
                version,
                operands,
                constants=_KNOWN,
                admits=known,
                note="const",
                **common,
            )
    cube = [counting(3, 3, 3), _tuples(3, lengths=(3, 3))]
    yield Sample("GatherND", 13, cube, constants=_KNOWN, admits=1, note="alike")


def _tuple_writes() -> Iterator[Sample]:
    x = counting(2, 3, 4, 5)
    cases: list[tuple[Array, tuple[int, ...], int, int]] = [
        (ints(1, 0)[:, np.newaxis], (2, 3, 4, 5), 5, 5),
        (_tuples(6, lengths=(2, 3)), (6, 4, 5), 3, 1),
        (_tuples(6, 2, lengths=(2, 3, 4)), (6, 2, 5), 5, 0),
        (_tuples(6, lengths=(2, 3, 4, 5)), (6,), 23, 0),
        (ints(1, 2), (4, 5), 3, 3),
    ]
    for version in versions("ScatterND"):
        for indices, shape, known, given in cases:
            operands = [x, indices, -counting(*shape)]
            yield Sample("ScatterND", version, operands, admits=given)
            yield Sample(
                "ScatterND", version, operands, constants=_KNOWN, admits=known, note="const"
            )
    for version, reductions in ((16, ("add", "mul")), (18, ("add", "mul", "max", "min"))):
        for reduction in reductions:
            operands = [x, _tuples(6, lengths=(2, 3)), small(6, 4, 5)]
            attributes = {"reduction": reduction}
            yield Sample("ScatterND", version, operands, attributes, admits=1, note=reduction)


def _cache_writes() -> Iterator[Sample]:
    """Six orders of four keep the batch in place."""
    cache, start = counting(2, 3, 6, 5), ints(1, 3)
    update = -counting(2, 3, 2, 5)
    for version in versions("TensorScatter"):
        yield Sample("TensorScatter", version, [cache, update], admits=5)
        yield Sample("TensorScatter", version, [cache, update, start], admits=5)
        circular = {"mode": "circular", "axis": 2}
        operands = [cache, update, ints(5, 4)]
        yield Sample("TensorScatter", version, operands, circular, admits=5, note="circular")
        first = [counting(2, 4, 3), -counting(2, 1, 3), start]
        yield Sample("TensorScatter", version, first, {"axis": 1}, _KNOWN, admits=1, note="const")


def _one_hots() -> Iterator[Sample]:
    depth, values = np.asarray(7), np.asarray([2, 9], np.float32)
    for version in versions("OneHot"):
        for indices in (_picks(2, 3, 4, below=7), _picks(2, 3, 4, 5, below=7)):
            for attributes in ({}, {"axis": 1}, {"axis": 0}, {"axis": -2}):
                note = f"axis{attributes.get('axis', '')}"
                yield Sample("OneHot", version, [indices, depth, values], attributes, note=note)
        known = frozenset({1, 2})
        yield Sample(
            "OneHot", version, [_picks(3, 3, below=7), depth, values], constants=known, note="const"
        )


SAMPLES = [
    *_gathers(),
    *_element_reads(),
    *_element_writes(),
    *_tuple_reads(),
    *_tuple_writes(),
    *_cache_writes(),
    *_one_hots(),
]
