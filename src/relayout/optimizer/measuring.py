"""The measured choice: candidates run in the target's runtime, and the fastest is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from relayout.assign.terms import Terms
from relayout.errors import RelayoutError
from relayout.graph.io.digest import ModelDigest, digest_of_file
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import staged
from relayout.optimizer.result import Result
from relayout.report.records import MeasuredModel, MeasuredRecord
from relayout.targets.target import Target
from relayout.timing.contest import GIVEN, Contest, Entrant
from relayout.timing.isolated import contest_isolated
from relayout.verify.verdict import NumericOptions

AS_GIVEN = "as given"
DEFAULT_MEASURING_SECONDS = 20.0

Holding: TypeAlias = Callable[..., Contest]
"""Runs files in turns, as `contest_isolated` does."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """How candidates are measured."""

    threads: int = 1
    """On more than one thread the clock decides too."""
    seconds: float = DEFAULT_MEASURING_SECONDS
    """About the most that is spent on one thread, and again on all."""
    holding: Holding = contest_isolated

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise RelayoutError("models are measured on at least one thread")


def candidates(terms: Terms) -> Iterator[Terms]:
    """What is tried besides the given model: as asked, then by other objectives, each also without
    operators that attentions are raised to. What is measured need not be predicted.
    """
    terms = replace(terms, no_figure_grows=False)
    others = (each for each in terms.target.objectives if each is not terms.objective)
    for objective in (terms.objective, *others):
        yield replace(terms, objective=objective)
        if terms.target.raises:
            spelt_out = replace(terms.target, raises=False)
            yield replace(terms, objective=objective, target=spelt_out)


def check_measurable(terms: Terms) -> None:
    """Refuse what cannot be measured before any work is done."""
    _engine_of(terms.target)
    if terms.frees:
        raise RelayoutError("models are measured with one interface: none of it may be free")


def words_of(terms: Terms) -> str:
    """A candidate in a few words."""
    raised = "" if terms.target.raises else ", no attention raised"
    return f"{terms.objective.least}{raised}"


def ranked(
    given: LoadedModel,
    results: Mapping[str, Result],
    inputs: NumericOptions,
    measuring: Measuring,
) -> tuple[tuple[str, ...], MeasuredRecord | None]:
    """The candidates that are faster than the given model, fastest first, and what was measured.

    Nothing is where no candidate differs from the given model.
    """
    made = {words: result for words, result in results.items() if result.changed}
    if not made:
        return (), None
    target = next(iter(made.values())).choose.terms.target
    with TemporaryDirectory(prefix="relayout-") as scratch, ExitStack() as stack:
        files = {GIVEN: _staged(stack, given, Path(scratch) / "given.onnx", changed=False)}
        for number, (words, result) in enumerate(made.items()):
            place = Path(scratch) / f"candidate-{number}.onnx"
            files[words] = _staged(stack, result.loaded, place, changed=True)
        held = measuring.holding(
            *(_different(files), _engine_of(target), inputs),
            threads=measuring.threads,
            seconds=measuring.seconds,
        )
    faster = [entrant for entrant in held.entrants if entrant.is_faster]
    order = sorted(faster, key=lambda entrant: -entrant.speed)
    return tuple(entrant.name for entrant in order), _record(held)


def _engine_of(target: Target) -> str:
    if not target.engine:
        raise RelayoutError(f"no runtime here runs models for {target.name}: nothing is measured")
    return target.engine


def _staged(stack: ExitStack, loaded: LoadedModel, place: Path, *, changed: bool) -> Path:
    return stack.enter_context(staged(loaded, place, changed=changed)).path


def _different(files: Mapping[str, Path]) -> dict[str, Path]:
    """The first of files that are the same."""
    first: dict[str, Path] = {}
    seen: list[ModelDigest] = []
    for name, file in files.items():
        digest = digest_of_file(file)
        if digest not in seen:
            first[name] = file
            seen.append(digest)
    return first


def with_kept(record: MeasuredRecord | None, kept: str) -> MeasuredRecord | None:
    """What was measured, with the candidate that the user gets."""
    return None if record is None else replace(record, kept=kept)


def _record(held: Contest) -> MeasuredRecord:
    models = tuple(map(_model_record, held.entrants))
    return MeasuredRecord(held.engine, held.version, held.threads, models, AS_GIVEN)


def _model_record(entrant: Entrant) -> MeasuredModel:
    on_core, on_clock = _ratio(entrant, clock=False), _ratio(entrant, clock=True)
    name = AS_GIVEN if entrant.name == GIVEN else entrant.name
    times = 1e3 * entrant.seconds, 1e3 * entrant.clock_seconds
    return MeasuredModel(name, times[0], on_core, times[1], on_clock, entrant.refusal)


def _ratio(entrant: Entrant, *, clock: bool) -> tuple[float, ...]:
    """The median and the interval of how many times as fast it is; nothing if unknown."""
    ratio = entrant.clock_ratio if clock else entrant.ratio
    return () if ratio is None else (ratio.median, ratio.low, ratio.high)
