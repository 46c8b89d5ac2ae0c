"""Samples for `relayout.ops.source`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relayout.ops.source import ML
from tests.samples.sample import Array, Sample, counting, small, versions

if TYPE_CHECKING:
    from collections.abc import Iterator


def _fourier() -> Iterator[Sample]:
    signal = counting(2, 3, 4, 2)
    for version in versions("DFT"):
        common: dict[str, Any] = {"admits": 5, "tolerance": 1e-5}
        yield Sample("DFT", version, [signal], note="default axis", **common)
        length = np.asarray(6, np.int64)
        yield Sample("DFT", version, [signal, length], {"inverse": 1}, note="longer", **common)
    for axis in (0, 2):
        yield Sample("DFT", 17, [signal], {"axis": axis}, note=f"axis {axis}", **common)
    for axis in (0, -2):
        operands: list[Array | None] = [counting(2, 3, 4, 1), None, np.asarray(axis, np.int64)]
        constants = frozenset({2})
        attributes = {"onesided": 1}
        note = f"axis {axis}"
        yield Sample("DFT", 20, operands, attributes, constants, note=note, **common)
    given = [signal, None, np.asarray(1, np.int64)]
    yield Sample("DFT", 20, given, admits=0, note="axis given at run time")


def _text() -> Iterator[Sample]:
    words = ("one", "two words", "of the sea", "", "a b c d")
    text = np.asarray([words[i] for i in counting(2, 3, 4, dtype=np.int64).ravel() % len(words)])
    data = text.reshape(2, 3, 4).astype(object)
    yield Sample("StringSplit", 20, [data], outputs=2)
    yield Sample("StringSplit", 20, [data[0]], {"delimiter": " "}, outputs=2)


def _labels() -> Iterator[Sample]:
    for version in versions("Binarizer", ML, oldest=1):
        yield Sample("Binarizer", version, [small(2, 3, 4)], {"threshold": 0.5}, domain=ML)
    names = np.asarray(["ant", "bee", "cat"], object)[counting(2, 3, 4, dtype=np.int64) % 3]
    numbers = counting(2, 3, 4, dtype=np.int64)
    classes = {"classes_strings": ["cat", "ant"]}
    yield Sample("LabelEncoder", 1, [names], classes, domain=ML, runtime="ort")
    table = {"keys_int64s": list(range(1, 20)), "values_int64s": list(range(40, 59))}
    for version in versions("LabelEncoder", ML, oldest=2):
        yield Sample("LabelEncoder", version, [numbers], table, domain=ML)
    categories = {"cats_strings": ["cat", "ant"], "cats_int64s": [5, 7]}
    yield Sample("CategoryMapper", 1, [names], categories, domain=ML, runtime="ort")


SAMPLES: list[Sample] = [*_fourier(), *_text(), *_labels()]
