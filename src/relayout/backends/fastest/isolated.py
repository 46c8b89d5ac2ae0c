"""Races and comparisons in processes of their own, so that no runtime can bring down its caller."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from relayout.backends.fastest.opening import options_as_json
from relayout.backends.fastest.ranking import RunWay
from relayout.backends.options import CompileOptions
from relayout.errors import RelayoutError
from relayout.verify.child import answered
from relayout.verify.difference import TOLERANCES
from relayout.verify.isolated import LONGEST, default_memory, verdict_of
from relayout.verify.verdict import NumericOptions, NumericVerdict

RACE = "relayout.backends.fastest.worker"
COMPARISON = "relayout.backends.fastest.verify_worker"


def numbers_of(options: CompileOptions) -> NumericOptions:
    """What is known of the inputs, also where no numbers are to be compared."""
    if options.inputs is not None:
        return options.inputs
    return NumericOptions(dims=dict(options.dims or {}), shapes=dict(options.shapes))


def shapes_isolated(given: Path, options: CompileOptions) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs that a model is timed on."""
    answer = race_isolated(given, {}, RunWay("", ""), options, 0.0)
    return {name: tuple(shape) for name, shape in answer["shapes"].items()}


def race_isolated(
    given: Path, built: Mapping[RunWay, Path], line: RunWay, options: CompileOptions, seconds: float
) -> Mapping[str, Any]:
    """The ways that were raced, as JSON; a `RelayoutError` where that cannot be done."""
    request = {
        "given": str(given.resolve()),
        "built": [(way.backend, way.name, str(path.resolve())) for way, path in built.items()],
        "line": (line.backend, line.name),
        "options": options_as_json(options),
        "inputs": numbers_of(options).to_json(),
        "seconds": seconds,
        "memory": None,
    }
    try:
        status, output, errors = answered(RACE, json.dumps(request), LONGEST + 4 * seconds)
    except subprocess.TimeoutExpired:
        raise RelayoutError("the ways to run the model took too long") from None
    if status != 0:
        last = errors.strip().splitlines()[-1:] or [f"exit code {status}"]
        raise RelayoutError(f"the ways to run the model could not be timed: {last[0]}")
    answer: Mapping[str, Any] = json.loads(output)
    if "error" in answer:
        raise RelayoutError(answer["error"])
    return answer


def compare_isolated_way(
    given: Path, way: RunWay, built: Path, options: CompileOptions, inputs: NumericOptions
) -> NumericVerdict:
    """Whether what was built computes what the given model states."""
    if inputs.tolerance is None and options.dtype is not None:
        inputs = replace(inputs, tolerance=TOLERANCES[options.dtype])
    request = {
        "given": str(given.resolve()),
        "way": (way.backend, way.name),
        "built": str(built.resolve()),
        "settings": options_as_json(options),
        "options": inputs.to_json(),
    }
    memory = None if options.device != "cpu" else default_memory(inputs, given, built)
    return verdict_of(COMPARISON, request, memory=memory)
