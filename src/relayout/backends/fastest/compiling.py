"""The road of a model to the fastest way to run it: ranked, built, verified, opened or written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from relayout.backends.candidates import CompiledModel
from relayout.backends.fastest.builds import Builds, builds_of, installed_ways
from relayout.backends.fastest.isolated import compare_isolated_way
from relayout.backends.fastest.kept import keep, place_of, read_ranking
from relayout.backends.fastest.opening import open_way
from relayout.backends.fastest.ranking import Ranking, RunWay, TimedWay
from relayout.backends.fastest.timing import SECONDS, ranked, untimed, with_shapes
from relayout.backends.machine import cores
from relayout.backends.options import Compilation, CompileOptions
from relayout.backends.registry import Backend
from relayout.errors import RelayoutError, VerificationError
from relayout.graph.io.destination import Destination
from relayout.graph.io.load import load
from relayout.graph.io.save import staged
from relayout.graph.io.sources import ModelSource
from relayout.optimizer.delivery import Stage
from relayout.verify.verdict import NumericVerdict


@dataclass(frozen=True, slots=True)
class FastestWay:
    """The fastest way that is verified, with what was built, or none and why."""

    ranking: Ranking
    way: RunWay | None = None
    built: Path = Path()
    verdict: NumericVerdict | None = None

    @property
    def refusals(self) -> str:
        """Why no way is left, each reason once."""
        refused: dict[str, list[str]] = {}
        for each in self.ranking.ways:
            if each.refusal:
                refused.setdefault(each.refusal, []).append(str(each.way))
        if len(refused) == 1:
            return next(iter(refused))
        reasons = (f"{', '.join(ways)}: {reason}" for reason, ways in refused.items())
        return "; ".join(reasons) or "nothing runs the model"


def compile_fastest(
    backends: Sequence[Backend],
    source: ModelSource,
    options: CompileOptions,
    stage: Stage = lambda _: None,
    seconds: float = SECONDS,
) -> CompiledModel:
    """A callable that does what a model does, by the fastest of some backends."""
    with fastest_of(backends, source, options, stage, seconds=seconds) as fastest:
        if fastest.way is None:
            raise _error(fastest)
        return open_way(fastest.way, fastest.built, _with_threads(options))


def write_fastest(
    backend: Backend,
    source: ModelSource,
    output: str | PathLike[str],
    options: CompileOptions,
    stage: Stage = lambda _: None,
) -> Compilation:
    """The ONNX file that one backend runs fastest."""
    destination = Destination.of(output)
    with fastest_of((backend,), source, options, stage) as fastest:
        if fastest.way is None:
            raise _error(fastest)
        stage("writing")
        with staged(load(fastest.built), destination, changed=False) as written:
            written.commit()
    files = () if destination.path is None else (destination.path,)
    return Compilation(fastest.verdict, files)


@contextmanager
def fastest_of(
    backends: Sequence[Backend],
    source: ModelSource,
    options: CompileOptions,
    stage: Stage = lambda _: None,
    *,
    again: bool = False,
    seconds: float = SECONDS,
) -> Iterator[FastestWay]:
    """The fastest way to run a model, built for as long as the block lasts.

    Ways are timed unless that is kept from before, `again` asks for it anew, or nothing is to be
    tuned. Then they are verified, the fastest first, until one computes what the model does.
    """
    stage("reading")
    given = load(source)
    options = _with_threads(options)
    ways = installed_ways(backends)
    place = place_of(given, ways, options)
    with builds_of(given) as builds:
        ranking = None if again or not options.tune else read_ranking(place)
        if ranking is None:
            timed = options.tune and len(ways) > 1
            ranking = ranked(builds, ways, options, stage, seconds) if timed else untimed(ways)
        ranking = replace(ranking, threads=options.threads or 1)
        fastest = _verified(builds, ranking, options, stage)
        if options.tune and fastest.way is not None:
            keep(place, fastest.ranking)
        yield fastest


def _verified(
    builds: Builds, ranking: Ranking, options: CompileOptions, stage: Stage
) -> FastestWay:
    """The first way that is right; those before it are refused."""
    building = with_shapes(builds, options, ranking.shapes)
    for timed in ranking.open:
        stage(f"comparing numbers: {timed.way}")
        verdict = None
        try:
            built = builds.of(timed.way, building)
        except RelayoutError as error:
            ranking = ranking.with_way(replace(timed, refusal=str(error)))
            continue
        if options.inputs is not None:
            verdict = compare_isolated_way(builds.path, timed.way, built, options, options.inputs)
        if verdict is None or verdict.equal:
            told = "not verified, as asked" if verdict is None else verdict.summary()
            ranking = ranking.with_way(replace(timed, verdict=told))
            return FastestWay(ranking, timed.way, built, verdict)
        ranking = ranking.with_way(_refused(timed, verdict))
    return FastestWay(ranking)


def _refused(timed: TimedWay, verdict: NumericVerdict) -> TimedWay:
    return replace(timed, refusal=verdict.summary(), verdict=verdict.status)


def _with_threads(options: CompileOptions) -> CompileOptions:
    return replace(options, threads=options.threads or cores())


def _error(fastest: FastestWay) -> RelayoutError:
    """Numbers that differ can be accepted; what does not run cannot."""
    was_compared = any(each.refusal and each.verdict for each in fastest.ranking.ways)
    if was_compared:
        return VerificationError(f"{fastest.refusals}; verify=False compiles it all the same")
    return RelayoutError(fastest.refusals)
