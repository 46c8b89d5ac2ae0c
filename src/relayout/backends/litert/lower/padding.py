"""Pads: with a number, reflected, or with entries repeated."""

from __future__ import annotations

import numpy as np

from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.layout.permutation import axis_among

REFLECT = 0
"""The number that the schema has for a border that is not repeated."""


def pad(call: LiteCall) -> FlatTensor:
    """A negative pad cuts off."""
    tensor = call.tensor(0)
    pairs = _pairs(call, tensor)
    starts = [max(-before, 0) for before, _ in pairs]
    lengths = [
        n - max(-before, 0) - max(-after, 0)
        for n, (before, after) in zip(tensor.shape, pairs, strict=True)
    ]
    kept = call.build.slice(tensor, starts, lengths)
    added = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if not any(map(any, added)):
        return kept
    mode = call.view.string("mode", "constant")
    if mode == "constant":
        return _with_number(call, kept, added)
    if mode == "reflect" and all(
        max(pair) < n for pair, n in zip(added, kept.shape, strict=True) if any(pair)
    ):
        return _mirrored(call, kept, added)
    return _repeated(call, kept, added, mode)


def _pairs(call: LiteCall, tensor: FlatTensor) -> list[tuple[int, int]]:
    pads = call.numbers("pads", 1) or ()
    axes = call.numbers("axes", 3) or tuple(range(tensor.rank))
    pairs = [(0, 0)] * tensor.rank
    for place, axis in enumerate(axes):
        pairs[axis_among(axis, tensor.rank)] = (pads[place], pads[place + len(axes)])
    return pairs


def _with_number(call: LiteCall, tensor: FlatTensor, pairs: list[tuple[int, int]]) -> FlatTensor:
    value = call.number("value", 0.0)
    if call.has(2):
        value = float(call.constant(2, "value").reshape(-1)[0])
    return call.build.pad(tensor, pairs, value)


def _mirrored(call: LiteCall, tensor: FlatTensor, pairs: list[tuple[int, int]]) -> FlatTensor:
    shape = tuple(n + sum(pair) for n, pair in zip(tensor.shape, pairs, strict=True))
    places = call.build.constant(np.asarray(pairs, np.int32))
    return call.build.put("MIRROR_PAD", [tensor, places], shape, mode=REFLECT)


def _repeated(
    call: LiteCall, tensor: FlatTensor, pairs: list[tuple[int, int]], mode: str
) -> FlatTensor:
    """Entries by their places, one axis after the other."""
    for axis, (before, after) in enumerate(pairs):
        if not before and not after:
            continue
        length = tensor.shape[axis]
        places = np.arange(-before, length + after)
        if mode == "edge":
            places = places.clip(0, length - 1)
        elif mode == "wrap":
            places %= length
        else:
            period = max(2 * (length - 1), 1)
            places = np.abs((places % period + length - 1) % period - (length - 1))
        tensor = call.build.places(tensor, places, axis)
    return tensor


LOWERINGS: dict[str, LiteLowering] = {"Pad": pad}
