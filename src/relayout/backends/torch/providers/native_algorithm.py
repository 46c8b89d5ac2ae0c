"""Which algorithm of the C++ kernels a convolution is done by: the plain one, or one with fewer
multiplications and more sums where that is faster on this machine.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import torch

from relayout.backends.torch.providers.clock import cpu_clock
from relayout.backends.torch.providers.native_interface import KernelKind
from relayout.backends.torch.providers.native_region import native_mark, native_source
from relayout.backends.torch.providers.native_steps import (
    TILES,
    Buffer,
    NativeStep,
    entry_of,
    form_of,
    placed,
)
from relayout.backends.torch.providers.prices import Price, Prices
from relayout.backends.torch.providers.window import Sliding
from relayout.backends.torch.runtime.native import NativeProgram
from relayout.backends.torch.runtime.native_library import compiler_version, target_of

COLD = 1 << 24
"""Floats that are written between two runs, so that weights come from memory as in a network."""

ROUNDS = 15
COPIES = 4

WORTH = 1.02
"""How many times as fast as the plain way another has to be."""


KindTimer: TypeAlias = Callable[[Sliding, Sequence[KernelKind]], list[Price]]
"""Times the kernels for a convolution."""


def fastest_kind(
    prices: Prices, window: Sliding, kinds: list[KernelKind], timer: KindTimer | None = None
) -> KernelKind:
    """The plain kernel, the first, unless another is clearly faster; timed once and kept."""
    plain = kinds[0]
    if len(kinds) == 1:
        return plain
    key = price_key(window)
    names = {kind: kind.name.lower() for kind in kinds}
    if prices.lacks(key, names.values()):
        for kind, price in zip(kinds, (timer or time_kinds)(window, kinds), strict=True):
            prices.learn(key, names[kind], price)
    seconds = prices.seconds(key)
    known = {kind: seconds[name] for kind, name in names.items()}
    best = min(kinds, key=known.__getitem__)
    return best if known[plain] > WORTH * known[best] else plain


def price_key(window: Sliding) -> str:
    """The name under which times of a convolution are kept."""
    shape = f"{'x'.join(map(str, window.source))}->{window.result[1]}"
    sizes = " by ".join("x".join(map(str, each)) for each in (window.kernel, window.strides))
    return f"native {build_mark()} {shape} {sizes} p{window.pads}"


@cache
def build_mark() -> str:
    """These kernels as they are built here: by source, flags, compiler and what it builds for.

    Times of kernels that were built differently do not hold for them.
    """
    flags: list[str] = native_source().interface["flags"]
    compiler = shutil.which(os.environ.get("CXX", "g++")) or ""
    built = [compiler_version(compiler), target_of(compiler, flags)] if compiler else []
    text = "\n".join([native_mark(), *flags, *built])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def time_kinds(window: Sliding, kinds: Sequence[KernelKind]) -> list[Price]:
    """What a convolution takes by each of these kernels, among others of its shape.

    The first one brings threads, operand, result and scratch to where they are in a network; the
    others find all of it there, but their weights in memory.
    """
    n, depth, height, width = window.source
    image = np.random.default_rng(0).standard_normal((n, height, width, depth), np.float32)
    programs = [_program(window, each) for each in kinds]
    for program in programs:
        program(None, torch.from_numpy(image).permute(0, 3, 1, 2))
    cold, clock = np.empty(COLD, np.float32), cpu_clock()
    seconds: list[list[float]] = [[] for _ in programs]
    for round_ in range(ROUNDS):
        for taken, program in zip(seconds, programs, strict=True):
            cold.fill(round_)
            since = clock()
            program.perform()
            taken.append((clock() - since) / COPIES)
    return [Price.of_runs(taken) for taken in seconds]


def _program(window: Sliding, kind: KernelKind) -> NativeProgram:
    """The same several times, with weights of their own."""
    n, depth, height, width = window.source
    source = Buffer((n, height, width, depth), 0)
    steps: list[NativeStep] = []
    weights: dict[str, Any] = {"bias": torch.zeros(window.result[1])}
    for name in map(str, range(COPIES)):
        weights[name] = torch.randn(window.result[1], depth, *window.kernel)
        steps += _steps(window, kind, source, name)
    result = steps[-1].result
    places, arena = placed(steps, [result])
    ports = (("last",), ((places[result], result.image, True),))
    entries = [entry_of(step, places) for step in steps]
    return NativeProgram(native_source(), entries, arena, weights, ports, _none)


def _steps(window: Sliding, kind: KernelKind, source: Buffer, weight: str) -> list[NativeStep]:
    n, height, width, depth = source.image
    top, left, bottom, right = window.pads
    result = Buffer((window.result[0], *window.result[2:], window.result[1]))
    packed = (form_of(kind, "filters"), weight)
    sizes = (window.kernel, window.strides, (top, left))
    step = NativeStep(kind, source, result, packed, "bias", None, *sizes)
    if kind in TILES or not any(window.pads):
        return [step]
    given = Buffer((n, height + top + bottom, width + left + right, depth))
    border = NativeStep(KernelKind.BORDER, source, given, pads=(top, left))
    return [border, replace(step, source=given, pads=(0, 0))]


def _none(*_operands: Any) -> None:
    """Nothing to fall back on: the program is only timed where it can be built."""
