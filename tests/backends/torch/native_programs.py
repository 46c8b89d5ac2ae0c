"""Programs of C++ kernels, run and compared with what torch computes in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from relayout.backends.torch.providers.native_region import native_source
from relayout.backends.torch.providers.native_steps import Image, NativeStep, entry_of, placed
from relayout.backends.torch.runtime.native import NativeProgram


def stored(image: Image) -> Any:
    """A random operand in NCHW, stored channels last."""
    n, height, width, depth = image
    generator = torch.Generator().manual_seed(math.prod(image))
    return torch.randn(n, height, width, depth, generator=generator).permute(0, 3, 1, 2)


def performed(
    steps: Sequence[NativeStep], weights: dict[str, Any], operands: Sequence[Any], threads: int
) -> Any:
    """What a program gives, in NCHW."""
    result = steps[-1].result
    places, arena = placed(list(steps), [result])
    ports = (("last",) * len(operands), ((places[result], result.image, True),))
    entries = [entry_of(step, places) for step in steps]
    program = NativeProgram(native_source(), entries, arena, weights, ports, lambda: None)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return program(None, *operands)[0]
    finally:
        torch.set_num_threads(before)


def assert_near(given: Any, wanted: Any, bound: float = 2e-6) -> None:
    error = torch.linalg.vector_norm(given.double() - wanted)
    assert error <= bound * torch.linalg.vector_norm(wanted)
