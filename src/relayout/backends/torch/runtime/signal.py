"""Fourier transforms with real and imaginary parts on an axis of their own."""

from __future__ import annotations

import math
from typing import Any

import torch


def widened_real(x: Any) -> Any:
    """Torch transforms no numbers of less than 32 bits."""
    return x.to(torch.float32) if x.element_size() < 4 else x


def as_complex(x: Any) -> Any:
    """The last axis holds real numbers, or real and imaginary parts."""
    x = widened_real(x)
    return x.squeeze(-1) if x.shape[-1] == 1 else torch.view_as_complex(x.contiguous())


def dft(x: Any, length: int | None, axis: int, inverse: bool, onesided: bool) -> Any:
    axis = axis % x.dim()
    given = as_complex(x)
    if inverse and onesided:
        length = 2 * (x.shape[axis] - 1) if length is None else length
        return torch.fft.irfft(given, length, axis).unsqueeze(-1).to(x.dtype)
    if inverse:
        return torch.view_as_real(torch.fft.ifft(given, length, axis)).to(x.dtype)
    result = torch.fft.fft(given, length, axis)
    if onesided:
        result = result.narrow(axis, 0, result.shape[axis] // 2 + 1)
    return torch.view_as_real(result).to(x.dtype)


def stft(signal: Any, step: int, window: Any, length: int | None, onesided: bool) -> Any:
    """The transform of each frame, multiplied by the window first."""
    given = as_complex(signal) if signal.dim() == 3 else widened_real(signal)
    size = window.shape[0] if length is None else length
    frames = given.unfold(1, size, step)
    if window is not None:
        missing = size - window.shape[0]
        left = missing // 2
        frames = frames * torch.nn.functional.pad(window, [left, missing - left])
    result = torch.fft.fft(frames)
    if onesided:
        result = result[..., : size // 2 + 1]
    return torch.view_as_real(result.resolve_conj()).to(signal.dtype)


def cosine_window(name: str, size: int, periodic: bool, dtype: Any, device: Any) -> Any:
    parts = {
        "hann": (0.5, 0.5, 0.0),
        "hamming": (25 / 46, 21 / 46, 0.0),
        "blackman": (0.42, 0.5, 0.08),
    }
    a, b, c = parts[name]
    period = size if periodic else size - 1
    angles = torch.arange(size, dtype=torch.float64, device=device) * (2 * math.pi / period)
    return (a - b * torch.cos(angles) + c * torch.cos(2 * angles)).to(dtype)


def mel_weights(
    bins: int, length: int, rate: int, low: float, high: float, dtype: Any, device: Any
) -> Any:
    """Triangles that are equally wide on the mel scale."""
    spectrum = length // 2 + 1
    low_mel, high_mel = (2595 * math.log10(1 + edge / 700) for edge in (low, high))
    step = (high_mel - low_mel) / (bins + 2)
    mels = [low_mel + index * step for index in range(bins + 2)]
    edges = [int((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate) for mel in mels]
    weights = torch.zeros(spectrum, bins, dtype=torch.float64)
    for index in range(bins):
        first, centre, last = edges[index : index + 3]
        rise = centre - first
        if rise == 0:
            weights[centre, index] = 1
        for place in range(first, centre + 1 if rise else first):
            weights[place, index] = (place - first) / rise
        for place in range(centre, last):
            weights[place, index] = (last - place) / (last - centre)
    return weights.to(dtype).to(device)
