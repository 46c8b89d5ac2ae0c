"""Whether Inductor should compile all steps of a program together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch

from relayout.backends.torch.choose.bench import timed
from relayout.backends.torch.choose.plan import Choice, device_name
from relayout.backends.torch.choose.prices import Prices
from relayout.backends.torch.modules.loading import loaded
from relayout.backends.torch.modules.source import is_replayed, write_source
from relayout.backends.torch.program.program import Program
from relayout.backends.torch.providers.window import known_shape

STEPS, JOINED = "steps", "joined"


def joined_where_faster(program: Program, choices: list[Choice]) -> Program:
    """The program as it is, or compiled as one function, which joins kernels of several steps.

    Both are timed as CUDA graphs, so launching kernels costs neither of them anything.
    """
    if not is_replayed(program):
        return program
    programs = {STEPS: program, JOINED: replace(program, is_joined=True)}
    text = write_source(program).text
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    key = f"program of {len(program.steps)} steps {mark}"
    prices = Prices.of(device_name(program.device))
    if prices.best(key, tuple(programs)) is None:
        runs = [_run_of(each) for each in programs.values()]
        for name, seconds in zip(programs, timed(runs, program.device), strict=True):
            prices.learn(key, name, seconds)
        prices.save()
    known = prices.seconds[key]
    chosen = min(programs, key=known.__getitem__)
    choices.append(Choice(key, chosen, known))
    return programs[chosen]


def _run_of(program: Program) -> Callable[[], Any]:
    """What the program does before it becomes a graph, on operands made up."""
    model = loaded(write_source(program), program.device)
    given = [_sample(value, program) for value in program.model.graph.inputs]
    return lambda: model.forward.forward(model.weights, *given)  # type: ignore[attr-defined]


def _sample(value: ir.Value, program: Program) -> torch.Tensor:
    """Noise, or zeros where numbers may have to be indices."""
    shape, dtype = known_shape(value) or (), value.dtype or ir.DataType.FLOAT
    draw = torch.randn if dtype.is_floating_point() else torch.zeros
    return draw(shape, device=program.device).to(getattr(torch, program.precision.name(dtype)))
