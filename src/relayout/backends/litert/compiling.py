"""The road of a model to LiteRT: lengths known, optimised, lowered, verified, written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from relayout.assign.terms import Terms
from relayout.backends.expanding import editable, expanded
from relayout.backends.litert.flat_graph import FlatGraph, FlatTensor
from relayout.backends.litert.flatbuffer import to_bytes
from relayout.backends.litert.fusing import fused
from relayout.backends.litert.halving import halved
from relayout.backends.litert.interpreting import LiteModel
from relayout.backends.litert.last_bytes import LastBytes, giving, last_steps
from relayout.backends.litert.lower.registry import missing
from relayout.backends.litert.lowering import lowered
from relayout.backends.litert.open_length import LENGTHS, with_open_length
from relayout.backends.litert.parts import LoweredFile, PartFile, cut_into_parts, ends_of_parts
from relayout.backends.litert.quantised import on_bytes
from relayout.backends.litert.steps import steps_of
from relayout.backends.litert.turning import turned
from relayout.backends.litert.verification import compare_written
from relayout.backends.options import Compilation, CompileOptions
from relayout.errors import RelayoutError, VerificationError
from relayout.graph.collector import paused_collector
from relayout.graph.io.defaults import without_defaults
from relayout.graph.io.destination import Destination, cannot_write, hand_over, reason_of
from relayout.graph.io.lengths import open_lengths, with_lengths
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import staged
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import Objective
from relayout.optimizer.delivery import Stage
from relayout.optimizer.rounds import best_form
from relayout.targets.target import LITERT
from relayout.verify.verdict import NumericVerdict

FILE = "model.tflite"
"""The name of a file that is written only to be verified."""
LAST = "last_bytes.tflite"
"""That of one which gives its last bytes too."""
PARTS, LOWERED = "parts.tflite", "lowered.onnx"
"""Those of the parts of a quantised model, and of the model that it was made of."""
HALF = "float16"


def compile_model(
    source: ModelSource, options: CompileOptions, stage: Stage = lambda _: None
) -> LiteModel:
    """A callable over the interpreter, verified unless that was not asked for."""
    chosen = _chosen(source, options, stage)
    content = to_bytes(chosen.graph, {})
    if options.inputs is not None:
        with _written(content, None) as file:
            verdict = _verdict(chosen, file, options, stage)
        if not verdict.equal:
            raise VerificationError(f"{verdict.summary()}; verify=False compiles it all the same")
    return LiteModel(content)


def write_module(
    source: ModelSource,
    output: str | PathLike[str],
    options: CompileOptions,
    stage: Stage = lambda _: None,
) -> Compilation:
    """A .tflite file, written only if it is verified or nobody asked."""
    destination, verdict = Destination.of(output), None
    chosen = _chosen(source, options, stage)
    stage("writing")
    content = to_bytes(chosen.graph, {})
    details = counted(chosen.graph, content)
    with _written(content, None if destination.is_stream else destination.path) as file:
        if options.inputs is not None:
            verdict = _verdict(chosen, file, options, stage)
        if verdict is not None and not verdict.equal:
            return Compilation(verdict, details=details)
        hand_over([(file, destination)])
    files = () if destination.path is None else (destination.path,)
    return Compilation(verdict, files, details)


def counted(graph: FlatGraph, content: bytes) -> dict[str, int]:
    """What a file holds, and in how many parts XNNPACK runs it."""
    return {
        "operators": len(graph.operators),
        "TRANSPOSE": graph.count("TRANSPOSE"),
        "XNNPACK partitions": LiteModel(content).partitions,
        "bytes": len(content),
    }


@dataclass(frozen=True, slots=True)
class _Conversion:
    """A model as given, as the builtins that do what it does, and what these were made of."""

    given: LoadedModel
    graph: FlatGraph
    lowered: tuple[_Lowered, ...]
    ends: Mapping[FlatTensor, str]
    """By tensor of bytes, the value of these models that it holds."""


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A model in LiteRT's layouts, and the length it was lowered at if the file leaves one open."""

    model: LoadedModel
    dims: Mapping[str, int] = field(default_factory=dict)


def _chosen(source: ModelSource, options: CompileOptions, stage: Stage) -> _Conversion:
    if options.device != "cpu" or options.dtype not in {None, HALF}:
        raise RelayoutError(f"LiteRT is written for a CPU, in float32 or with {HALF} weights")
    stage("reading")
    given = load(source)
    symbols = open_lengths(_of_lengths(given, options))
    # Along other axes windows and paddings depend on the length, which two lengths do not show.
    if [*symbols.values()] != [{0}]:
        return _at_lengths(given, options, stage)
    (symbol,) = symbols
    one, other = (_at_length(given, options, {symbol: length}, stage) for length in LENGTHS)
    graph = with_open_length(one.graph, other.graph, symbol)
    return _Conversion(given, graph, (*one.lowered, *other.lowered), one.ends)


def _at_length(
    given: LoadedModel, options: CompileOptions, dims: Mapping[str, int], stage: Stage
) -> _Conversion:
    made = _at_lengths(given, replace(options, dims={**(options.dims or {}), **dims}), stage)
    return replace(made, lowered=tuple(replace(each, dims=dims) for each in made.lowered))


def _at_lengths(given: LoadedModel, options: CompileOptions, stage: Stage) -> _Conversion:
    """The builtins for a model all of whose lengths are known."""
    stage("optimising")
    model = optimised(given, options)
    stage("lowering")
    graph = on_bytes(turned(fused(lowered(model.ir))))
    graph = halved(graph) if options.dtype == HALF else graph
    return _Conversion(given, graph, (_Lowered(model),), ends_of_parts(graph, model.ir))


def _of_lengths(given: LoadedModel, options: CompileOptions) -> LoadedModel:
    loaded = without_defaults(given) if options.fix_defaults else given
    return with_lengths(editable(loaded), options.shapes, options.dims or {})


def optimised(given: LoadedModel, options: CompileOptions) -> LoadedModel:
    """The model in the layouts that LiteRT has kernels for, all lengths known."""
    loaded = _of_lengths(given, options)
    # Quantised parts keep what they round.
    terms = Terms(Objective.COUNT, LITERT, recomputes=False)
    with paused_collector():
        return best_form(expanded(loaded, missing), terms)


@contextmanager
def _written(content: bytes, place: Path | None) -> Iterator[Path]:
    """A file in a folder that goes away again."""
    folder = None if place is None else place.parent
    with TemporaryDirectory(prefix=".relayout-", dir=folder) as scratch:
        file = Path(scratch) / (FILE if place is None else place.name)
        try:
            file.write_bytes(content)
        except OSError as error:
            raise cannot_write(place or FILE, reason_of(error)) from None
        yield file


def _verdict(
    chosen: _Conversion, file: Path, options: CompileOptions, stage: Stage
) -> NumericVerdict:
    stage("comparing numbers")
    steps = steps_of(chosen.graph)
    last = None if all(steps.values()) else _with_last_bytes(chosen.graph, file.with_name(LAST))
    with ExitStack() as stack:
        path = chosen.given.path or stack.enter_context(
            _copied(chosen.given, file.with_name("given.onnx"), changed=False)
        )
        parts = stack.enter_context(_in_parts(chosen, file)) if steps else None
        return compare_written(path, file, options, steps=steps, last=last, parts=parts)


@contextmanager
def _copied(model: LoadedModel, file: Path, *, changed: bool) -> Iterator[Path]:
    with staged(model, file, changed=changed) as copy:
        yield copy.path


@contextmanager
def _in_parts(chosen: _Conversion, file: Path) -> Iterator[PartFile | None]:
    """A file of the parts of a quantised model beside the one that is verified, if it has some."""
    if not chosen.ends:
        yield None
        return
    graph, fed = cut_into_parts(chosen.graph, chosen.ends)
    place = file.with_name(PARTS)
    place.write_bytes(to_bytes(graph, {}))
    with ExitStack() as stack:
        files = [
            LoweredFile(
                stack.enter_context(
                    _copied(each.model, file.with_name(f"{index}{LOWERED}"), changed=True)
                ),
                each.dims,
            )
            for index, each in enumerate(chosen.lowered)
        ]
        yield PartFile(place, files, fed, {end.name: value for end, value in chosen.ends.items()})


def _with_last_bytes(graph: FlatGraph, file: Path) -> LastBytes | None:
    """A file beside the one that is verified, where results are computed from bytes in floats."""
    steps = last_steps(graph)
    if not steps:
        return None
    file.write_bytes(to_bytes(giving(graph, [*steps]), {}))
    return LastBytes(file, {tensor.name: step for tensor, step in steps.items()})
