"""Fourier transforms: products with matrices of true cosines and sines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.residues import added, encoded, multiplied, subtracted

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

AXIS_OPERAND_SINCE = 20


def dft(call: FieldCall) -> FieldTensor:
    """The last axis has real and, for complex numbers, imaginary parts."""
    numbers = call.residues(0)
    if call.version >= AXIS_OPERAND_SINCE:
        axis = call.integers(2)[0] if call.has(2) else -2
    else:
        axis = call.integer("axis", 1)
    axis %= numbers.ndim
    length = call.integers(1)[0] if call.has(1) else numbers.shape[axis]
    moved = np.moveaxis(numbers, axis, -2)[..., :length, :]
    short = length - moved.shape[-2]
    moved = np.pad(moved, [*[(0, 0)] * (moved.ndim - 2), (0, short), (0, 0)])
    inverse, half = bool(call.integer("inverse", 0)), bool(call.integer("onesided", 0))
    result = _transformed(call, moved, inverse=inverse, half=half)
    return call.like(np.moveaxis(result, -2, axis))


def _transformed(call: FieldCall, numbers: Residues, *, inverse: bool, half: bool) -> Residues:
    """Along the axis before the last."""
    length = numbers.shape[-2]
    kept = length // 2 + 1 if half else length
    angle = 2 * np.pi * np.outer(np.arange(length), np.arange(kept)) / length
    scale = 1 / length if inverse else 1.0
    cosine = encoded(np.cos(angle) * scale)
    sine = encoded(np.sin(angle) * (scale if inverse else -scale))
    real = numbers[..., 0]
    parts = [_row(call, real, cosine), _row(call, real, sine)]
    if numbers.shape[-1] == 2:
        imaginary = numbers[..., 1]
        parts[0] = subtracted(parts[0], _row(call, imaginary, sine))
        parts[1] = added(parts[1], _row(call, imaginary, cosine))
    return np.stack(parts, -1)


def _row(call: FieldCall, numbers: Residues, matrix: Residues) -> Residues:
    rows = numbers.reshape(-1, numbers.shape[-1])
    return call.product(rows, matrix).reshape(*numbers.shape[:-1], matrix.shape[-1])


def stft(call: FieldCall) -> FieldTensor:
    """Frames of the signal, each times the window, transformed."""
    signal = call.residues(0)
    if signal.ndim == 2:
        signal = signal[..., None]
    step = call.integers(1)[0]
    window = call.residues(2) if call.has(2) else None
    length = call.integers(3)[0] if call.has(3) else 0 if window is None else window.shape[0]
    count = (signal.shape[1] - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)[None, :]
    call.context.check((signal.shape[0], *places.shape, signal.shape[2]))
    frames = signal[:, places]
    if window is not None:
        frames = multiplied(frames, window[:, None])
    half = bool(call.integer("onesided", 1))
    return call.like(_transformed(call, frames, inverse=False, half=half))


KERNELS: dict[str, FieldKernel] = {"DFT": dft, "STFT": stft}
