"""The ways to run a model, built and timed in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relayout.backends.fastest.builds import Builds
from relayout.backends.fastest.isolated import numbers_of, race_isolated, shapes_isolated
from relayout.backends.fastest.kept import versions_of
from relayout.backends.fastest.ranking import Ranking, RunWay, TimedWay
from relayout.backends.machine import processor_name
from relayout.backends.options import CompileOptions
from relayout.backends.registry import ORT_BACKEND
from relayout.errors import RelayoutError
from relayout.graph.io.digest import digest_of_file
from relayout.optimizer.delivery import Stage
from relayout.optimizer.measuring import AS_GIVEN
from relayout.verify.interface import interface_of

SECONDS = 10.0
"""About the most that is spent on turns of all ways, and again of those that are close."""

LINE = RunWay(ORT_BACKEND.name, AS_GIVEN)
"""What all ways are compared with."""


def untimed(ways: Sequence[RunWay], reason: str = "") -> Ranking:
    """Ways in the order in which backends prefer them."""
    return Ranking(tuple(map(TimedWay, ways)), 1, reason=reason)


def ranked(
    builds: Builds, ways: Sequence[RunWay], options: CompileOptions, stage: Stage, seconds: float
) -> Ranking:
    """All ways, timed; where the model cannot be timed, in the order that backends prefer."""
    stage("finding inputs")
    try:
        shapes = shapes_isolated(builds.path, options)
    except RelayoutError as error:
        return untimed(ways, str(error))
    known = with_shapes(builds, options, shapes)
    refused = _built(builds, ways, known, stage)
    built = {way: builds.built[way] for way in ways if way not in refused}
    left_out = tuple(TimedWay(way, refusal=reason) for way, reason in refused.items())
    if len(built) < 2:
        return Ranking((*map(TimedWay, built), *left_out), known.threads or 1, shapes)
    stage(f"timing {len(built)} ways")
    try:
        answer = race_isolated(builds.path, built, LINE, known, seconds)
    except RelayoutError as error:
        return untimed([*built], str(error))
    return Ranking(
        (*map(TimedWay.from_json, answer["ways"]), *left_out),
        known.threads or 1,
        shapes,
        answer["line"],
        versions_of(ways),
        processor_name(),
        answer["is_noisy"],
    )


def with_shapes(
    builds: Builds, options: CompileOptions, shapes: Mapping[str, tuple[int, ...]]
) -> CompileOptions:
    """Options with the lengths of the inputs that are timed, which kernels are chosen for."""
    numbers = replace(numbers_of(options), shapes=dict(shapes))
    dims = dict(options.dims or {})
    for port in interface_of(builds.path).required:
        for axis, name in port.free.items() if port.name in shapes else ():
            dims.setdefault(name, shapes[port.name][axis])
    return replace(options, dims=dims, inputs=numbers)


def _built(
    builds: Builds, ways: Sequence[RunWay], options: CompileOptions, stage: Stage
) -> dict[RunWay, str]:
    """Build all ways, and return those that cannot be built or give nothing new, with reasons."""
    refused: dict[RunWay, str] = {}
    seen: dict[str, RunWay] = {}
    # What is given comes first, so that it is what stays of two that are the same.
    for way in sorted(ways, key=lambda each: each.name != AS_GIVEN):
        stage(f"building {way}")
        try:
            path = builds.of(way, options)
        except RelayoutError as error:
            refused[way] = str(error)
            continue
        if path.suffix != ".onnx":
            continue
        mark = f"{way.backend} {digest_of_file(path).to_json()}"
        first = seen.setdefault(mark, way)
        if first != way:
            refused[way] = f"the same file as {first.name}"
    return refused
