"""Whether Inductor should compile all steps of a program together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch

from relayout.backends.torch.choose.bench import time_runs
from relayout.backends.torch.choose.choices import Choice, PricedCandidate
from relayout.backends.torch.choose.plan import Plan
from relayout.backends.torch.modules.loading import loaded
from relayout.backends.torch.modules.source import is_replayed, write_source
from relayout.backends.torch.program.program import Program
from relayout.backends.torch.providers.prices import Price, Prices
from relayout.backends.torch.providers.window import known_shape
from relayout.backends.torch.providers.work import WorkDescription
from relayout.graph.read import is_op

STEPS, JOINED, WHOLE, GIVEN = "steps", "joined", "whole", "given"
WORDS = {
    STEPS: "step by step",
    JOINED: "all steps compiled together",
    WHOLE: "all nodes compiled together",
    GIVEN: "all nodes as given compiled together",
}


def joined_where_faster(program: Program, plan: Plan, given: Program | None = None) -> Program:
    """The program as it is, or compiled as one function, which joins kernels of several steps.

    The third way leaves all kernels to Inductor, and the layouts too, if they were others, in case
    the others are slower. All are timed in turns, and as CUDA graphs, so launching kernels costs
    none of them anything.
    """
    if not is_replayed(program):
        return program
    programs = {STEPS: program, JOINED: replace(program, is_joined=True)}
    whole = left_to_inductor(replace(program, steps=tuple(plan.plain_steps())))
    if given is not None and _is_another(given, whole):
        programs[GIVEN] = given
    else:
        programs[WHOLE] = whole
    key, prices = program_key(program), plan.prices
    if prices.lacks(key, programs):
        for name, price in zip(programs, _timed([*programs.values()]), strict=True):
            prices.learn(key, name, price)
    known = prices.seconds(key)
    chosen = min(programs, key=known.__getitem__)
    plan.add_choice(
        Choice(key, described_program(program), chosen, _options(key, programs, prices))
    )
    return programs[chosen]


def left_to_inductor(program: Program) -> Program:
    """A program compiled as a whole: with freezing, which lays weights out, if it has any to lay.

    Those of products are as good as they are.
    """
    has_windows = any(is_op(node, "Conv", "ConvTranspose") for node in program.model.graph)
    return replace(program, is_joined=not has_windows, is_frozen=has_windows)


def _is_another(given: Program, whole: Program) -> bool:
    """Whether the model before layouts were chosen is another one, and can be replayed too."""
    return is_replayed(given) and program_key(given) != program_key(whole)


def program_key(program: Program) -> str:
    """What identifies a program: the text of its module."""
    text = write_source(program).text
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"program of {len(program.steps)} steps {mark}"


def described_program(program: Program) -> WorkDescription:
    graph = program.model.graph
    first, last = (known_shape(values[0]) or () for values in (graph.inputs, graph.outputs))
    name = f"whole program of {len(program.steps)} steps"
    return WorkDescription(name, first, last, dtype=program.precision.name(ir.DataType.FLOAT))


def _options(key: str, names: Iterable[str], prices: Prices) -> tuple[PricedCandidate, ...]:
    known = prices.known[key]
    return tuple(
        PricedCandidate("torch" if name == STEPS else "inductor", name, WORDS[name], known[name])
        for name in names
    )


def _timed(programs: Sequence[Program]) -> list[Price]:
    return time_runs([_run_of(program) for program in programs], programs[0].device)


def _run_of(program: Program) -> Callable[[], Any]:
    """What the program does before it becomes a graph, on operands made up."""
    model = loaded(write_source(program), program.device)
    given = [sample_operand(value, program) for value in program.model.graph.inputs]
    return lambda: model.forward.forward(model.weights, *given)  # type: ignore[attr-defined]


def sample_operand(value: ir.Value, program: Program) -> torch.Tensor:
    """Noise, or zeros where numbers may have to be indices."""
    shape, dtype = known_shape(value) or (), value.dtype or ir.DataType.FLOAT
    draw = torch.randn if dtype.is_floating_point() else torch.zeros
    return draw(shape, device=program.device).to(getattr(torch, program.precision.name(dtype)))
