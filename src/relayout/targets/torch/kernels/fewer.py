"""Whether a convolution is faster with fewer multiplications and more sums on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from relayout.targets.torch.kernels.fused import Activation
from relayout.targets.torch.kernels.native_region import native_source
from relayout.targets.torch.kernels.native_steps import (
    Buffer,
    Kind,
    NativeStep,
    entry_of,
    fewer_kind,
    form_of,
    placed,
)
from relayout.targets.torch.kernels.prices import Prices
from relayout.targets.torch.kernels.window import Sliding, pointwise
from relayout.targets.torch.runtime.native import NativeProgram

COLD = 1 << 24
"""Floats that are written between two runs, so that weights come from memory as in a network."""

AWAKE = 0.0005
"""Seconds after which a thread that was called has come."""

ROUNDS = 15


def prefers_fewer(window: Sliding, prices: Prices) -> bool:
    """Timed once and kept."""
    kind = fewer_kind(window, Activation())
    if kind is None:
        return False
    shape = f"{'x'.join(map(str, window.source))}->{window.result[1]}"
    key = f"native {shape} {'x'.join(map(str, window.kernel))} p{window.pads}"
    names = ("direct", kind.name.lower())
    if prices.best(key, names) is None:
        for name, seconds in zip(names, _times(window, kind), strict=True):
            prices.learn(key, name, seconds)
    return prices.best(key, names) == names[1]


def _times(window: Sliding, kind: Kind) -> list[float]:
    programs = [_program(window, each) for each in (Kind.CONVOLUTION, kind)]
    n, depth, height, width = window.source
    image = np.random.default_rng(0).standard_normal((n, height, width, depth), np.float32)
    operand = torch.from_numpy(image).permute(0, 3, 1, 2)
    tiny, pixel = _program(pointwise((1, 8, 1, 1), 8), Kind.CONVOLUTION), torch.zeros(1, 8, 1, 1)
    for program, given in ((tiny, pixel), *((each, operand) for each in programs)):
        program(None, given)
    cold = np.empty(COLD, np.float32)
    taken: list[list[float]] = [[], []]
    for round_ in range(ROUNDS):
        for index, program in enumerate(programs):
            cold.fill(round_)
            image.sum()
            _wake(tiny.perform)
            since = time.perf_counter()
            program.perform()
            taken[index].append(time.perf_counter() - since)
    return [min(each) for each in taken]


def _wake(run: Callable[[], Any]) -> None:
    """Call the team of threads until all of it is awake, as it is inside a network."""
    until = time.perf_counter() + AWAKE
    while time.perf_counter() < until:
        run()


def _program(window: Sliding, kind: Kind) -> NativeProgram:
    n, depth, height, width = window.source
    top, left, bottom, right = window.pads
    source = Buffer((n, height, width, depth), 0)
    result = Buffer((window.result[0], *window.result[2:], window.result[1]))
    steps: list[NativeStep] = []
    given, pads = source, (top, left)
    if kind == Kind.CONVOLUTION and any(window.pads):
        given = Buffer((n, height + top + bottom, width + left + right, depth))
        steps.append(NativeStep(Kind.BORDER, source, given, pads=pads))
        pads = (0, 0)
    weight = (form_of(kind, "filters"), "weight")
    steps.append(NativeStep(kind, given, result, weight, "bias", kernel=window.kernel, pads=pads))
    places, arena = placed(steps, [result])
    weights: dict[str, Any] = {
        "weight": torch.randn(window.result[1], depth, *window.kernel),
        "bias": torch.zeros(window.result[1]),
    }
    ports = (("last",), ((places[result], result.image, True),))
    entries = [entry_of(step, places) for step in steps]
    return NativeProgram(native_source(), entries, arena, weights, ports, _none)


def _none(*_operands: Any) -> None:
    """Nothing to fall back on: the program is only timed where it can be built."""
