"""Whether Inductor should compile a whole program for a CPU, with its weights as constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from relayout.backends.torch.choose.bench import TimedRun, reason_of, time_runs
from relayout.backends.torch.choose.choices import Choice, PricedCandidate
from relayout.backends.torch.choose.joined import (
    STEPS,
    described_program,
    program_key,
    sample_operand,
)
from relayout.backends.torch.choose.plan import Plan
from relayout.backends.torch.modules.loading import loaded
from relayout.backends.torch.modules.source import has_known_lengths, write_source
from relayout.backends.torch.program.program import Program, eager_steps
from relayout.backends.torch.providers.inductor_provider import SLOW, InductorProvider
from relayout.backends.torch.providers.prices import Price

FROZEN = "frozen"


def frozen_where_faster(program: Program, plan: Plan) -> Program:
    """The program as it is, or all its nodes as Inductor compiles them with freezing.

    So nothing is slower than Inductor alone, as far as it is worth while to compile: what takes
    less than a millisecond is not tried, since every process that loads the module compiles anew.
    """
    has_inductor = any(isinstance(each, InductorProvider) for each in plan.providers)
    if program.device != "cpu" or not has_inductor or not has_known_lengths(program):
        return program
    frozen = replace(program, steps=eager_steps(program.model), is_frozen=True)
    programs = {STEPS: program, FROZEN: frozen}
    key, prices = f"weights as constants, {program_key(program)}", plan.prices
    if prices.lacks(key, [STEPS]):
        prices.learn(key, STEPS, *_timed([program]))
    if prices.seconds(key)[STEPS] < SLOW:
        return program
    if prices.lacks(key, programs):
        for name, price in zip(programs, _timed([*programs.values()]), strict=True):
            prices.learn(key, name, price)
    chosen = prices.best(key, tuple(programs)) or STEPS
    known = prices.known[key]
    options = (
        PricedCandidate("torch", STEPS, "step by step", known[STEPS]),
        PricedCandidate("inductor", FROZEN, "all nodes compiled with freezing", known[FROZEN]),
    )
    plan.add_choice(Choice(key, described_program(program), chosen, options))
    return programs[chosen]


def _timed(programs: Sequence[Program]) -> list[Price]:
    return time_runs([_ready(program) for program in programs], "cpu")


def _ready(program: Program) -> TimedRun | str:
    """A run of a program, or why it cannot be loaded."""
    try:
        return _run_of(program)
    except RuntimeError as error:
        return reason_of(error)


def _run_of(program: Program) -> Callable[[], Any]:
    model = loaded(write_source(program), program.device)
    given = [sample_operand(value, program) for value in program.model.graph.inputs]
    return lambda: model.forward(model.weights, *given)
