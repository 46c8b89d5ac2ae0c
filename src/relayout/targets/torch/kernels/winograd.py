"""Whether Winograd's way is the faster one for a 3x3 convolution on this machine."""

from __future__ import annotations

import time
from typing import Any

import torch

from relayout.targets.torch.kernels.native_region import native_source
from relayout.targets.torch.kernels.native_steps import (
    Buffer,
    Kind,
    NativeStep,
    entry_of,
    placed,
)
from relayout.targets.torch.kernels.prices import Prices
from relayout.targets.torch.kernels.window import Sliding
from relayout.targets.torch.runtime.native import NativeProgram

COLD = 1 << 24
"""Floats that are written between two runs, so that weights come from memory as in a network."""

ROUNDS = 5


def prefers_winograd(window: Sliding, prices: Prices) -> bool:
    """Timed once and kept."""
    key = f"native {'x'.join(map(str, window.source))}->{window.result[1]} 3x3 p{window.pads}"
    names = ("winograd", "direct")
    if prices.best(key, names) is None:
        for name, seconds in zip(names, _times(window), strict=True):
            prices.learn(key, name, seconds)
    return prices.best(key, names) == "winograd"


def _times(window: Sliding) -> list[float]:
    programs = [_program(window, is_winograd) for is_winograd in (True, False)]
    n, depth, height, width = window.source
    operand = torch.randn(n, depth, height, width).contiguous(memory_format=torch.channels_last)
    cold = torch.empty(COLD)
    taken: list[list[float]] = [[], []]
    for round_ in range(ROUNDS):
        for index, program in enumerate(programs):
            cold.fill_(round_)
            since = time.perf_counter()
            program(None, operand)
            taken[index].append(time.perf_counter() - since)
    return [min(each) for each in taken]


def _program(window: Sliding, is_winograd: bool) -> NativeProgram:
    n, depth, height, width = window.source
    top, left, bottom, right = window.pads
    source = Buffer((n, height, width, depth), 0)
    result = Buffer((window.result[0], *window.result[2:], window.result[1]))
    steps: list[NativeStep] = []
    given, pads = source, (top, left)
    if not is_winograd:
        given = Buffer((n, height + top + bottom, width + left + right, depth))
        steps.append(NativeStep(Kind.BORDER, source, given, pads=pads))
        pads = (0, 0)
    kind, form = (Kind.WINOGRAD, "winograd") if is_winograd else (Kind.CONVOLUTION, "filters")
    steps.append(
        NativeStep(kind, given, result, (form, "weight"), "bias", kernel=(3, 3), pads=pads)
    )
    places, arena = placed(steps, [result])
    weights: dict[str, Any] = {
        "weight": torch.randn(window.result[1], depth, 3, 3),
        "bias": torch.zeros(window.result[1]),
    }
    ports = (("last",), ((places[result], result.image, True),))
    entries = [entry_of(step, places) for step in steps]
    return NativeProgram(native_source(), entries, arena, weights, ports, _none)


def _none(*_operands: Any) -> None:
    """Nothing to fall back on: the program is only timed where it can be built."""
