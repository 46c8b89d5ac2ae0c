"""A written file compared with the model it was made of, in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from relayout.backends import comparing
from relayout.backends.litert.last_bytes import LastBytes
from relayout.backends.litert.parts import PartComparison, PartFile
from relayout.backends.litert.stepwise import StepComparison
from relayout.backends.options import CompileOptions
from relayout.verify.difference import TOLERANCES, Tolerance
from relayout.verify.isolated import default_memory, verdict_of
from relayout.verify.runtimes import Run
from relayout.verify.verdict import NumericOptions, NumericVerdict

NAME = "LiteRT"


def compare_written(
    given: Path,
    file: Path,
    options: CompileOptions,
    *,
    steps: Mapping[str, float],
    last: LastBytes | None,
    parts: PartFile | None,
) -> NumericVerdict:
    """As `compare_file`, in a process of its own."""
    inputs = options.inputs or NumericOptions()
    if inputs.tolerance is None and options.dtype is not None:
        inputs = replace(inputs, tolerance=TOLERANCES[options.dtype])
    request = {
        "given": str(given.resolve()),
        "file": str(file.resolve()),
        "fixed": options.fix_defaults,
        "steps": dict(steps),
        "last": None if last is None else last.to_json(),
        "parts": None if parts is None else parts.to_json(),
        "options": inputs.to_json(),
    }
    memory = default_memory(inputs, given)
    return verdict_of("relayout.backends.litert.worker", request, memory=memory)


def compare_file(
    given: Path,
    file: Path,
    options: NumericOptions,
    *,
    fixed: bool,
    steps: Mapping[str, float] | None = None,
    last: LastBytes | None = None,
    parts: PartFile | None = None,
) -> NumericVerdict:
    """Whether the interpreter computes from a file what a model states.

    `steps`, of the outputs of a quantised model: numbers may differ by one where others do not;
    `last`, where outputs are computed from bytes in floats; `parts`, where steps add up.
    """
    verdict = comparing.compare_compiled(
        given,
        NAME,
        lambda: _runner(file, delegates=True),
        options,
        fixed=fixed,
        load_other=lambda: _runner(file, delegates=False),
    )
    if verdict.equal or not steps:
        return verdict
    run = _runner(file, delegates=True)
    to_last = None if last is None else _runner(last.file, delegates=True)
    by_parts = None if parts is None else _by_parts(parts, steps, options)
    comparison = StepComparison(given, run, steps, options, fixed, last, to_last, by_parts)
    return comparison.verdict(verdict)


def _by_parts(
    parts: PartFile, steps: Mapping[str, float], options: NumericOptions
) -> PartComparison:
    tolerance = Tolerance(TOLERANCES, options.tolerance)
    return PartComparison(parts, _runner(parts.file, delegates=True), steps, tolerance)


def _runner(file: Path, *, delegates: bool) -> Run:
    from relayout.backends.litert.interpreting import LiteModel  # noqa: PLC0415 - in the worker

    model = LiteModel(file, delegates=delegates)
    return lambda feeds: list(model(dict(feeds)).values())
