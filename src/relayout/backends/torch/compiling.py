"""The road of a model to torch: optimised, cut into kernels, verified, written or loaded."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx_ir as ir
import torch

from relayout.assign.terms import Terms
from relayout.backends.candidates import Candidates
from relayout.backends.expanding import editable, expanded
from relayout.backends.options import Compilation, CompileOptions
from relayout.backends.torch.choose.notices import KernelWarning
from relayout.backends.torch.choose.settings import TuningSettings
from relayout.backends.torch.choose.tuning import tuned
from relayout.backends.torch.lower.registry import missing
from relayout.backends.torch.modules.loading import check_device, compile_program, module_of
from relayout.backends.torch.modules.source import write_source
from relayout.backends.torch.modules.weights import write_weights
from relayout.backends.torch.program.dtypes import precision_of
from relayout.backends.torch.program.program import Program, eager_steps
from relayout.backends.torch.providers.registry import ever_plainer
from relayout.backends.torch.runtime.model import Model, read_weights
from relayout.backends.torch.verification import CompiledFiles, compare_written
from relayout.errors import RelayoutError, VerificationError
from relayout.graph.collector import paused_collector
from relayout.graph.io.defaults import without_defaults
from relayout.graph.io.destination import Destination, cannot_write, hand_over, reason_of
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import staged
from relayout.graph.io.sources import ModelSource
from relayout.optimizer.delivery import Stage
from relayout.optimizer.prepare import prepare
from relayout.optimizer.rounds import best_form
from relayout.targets.target import TORCH
from relayout.verify.verdict import NumericOptions, NumericVerdict

DEVICES = ("cpu", "cuda")
WEIGHTS = ".safetensors"
MODULE = "model.py"
"""The name of a module that is written only to be verified, or timed."""
PLAINER = "the fastest kernels give other numbers than verification allows; kernels are now of"
KERNELS = "fused kernels"
"""The way in which torch takes part where backends are compared."""


def compile_model(
    source: ModelSource, options: CompileOptions, stage: Stage = lambda _: None
) -> Model:
    """A callable that does what a model does, verified unless that was not asked for."""
    _set_threads(options)
    verdicts = []
    for chosen in _choices(source, options, stage):
        if options.inputs is not None:
            with _written(chosen.program, None) as files:
                verdicts.append(_verdict(chosen, files[0], options, options.inputs, stage))
        if not verdicts or verdicts[-1].equal:
            return compile_program(chosen.program)
        if verdicts[-1].status != "differs":
            break  # Nothing was compared, which other kernels do not change.
    raise VerificationError(f"{verdicts[0].summary()}; verify=False compiles it all the same")


def write_module(
    source: ModelSource,
    output: str | PathLike[str],
    options: CompileOptions,
    stage: Stage = lambda _: None,
) -> Compilation:
    """A module with its weights beside it, written only if it is verified or nobody asked."""
    place, verdicts = _place(output), []
    _set_threads(options)
    for chosen in _choices(source, options, stage):
        stage("writing")
        with _written(chosen.program, place) as files:
            if options.inputs is not None:
                verdicts.append(_verdict(chosen, files[0], options, options.inputs, stage))
            if not verdicts or verdicts[-1].equal:
                return Compilation(verdicts[-1] if verdicts else None, _put(files, place))
        if verdicts[-1].status != "differs":
            break
    return Compilation(verdicts[0])


def program_of(
    source: ModelSource,
    *,
    device: str = "cpu",
    dtype: str | None = None,
    fix_defaults: bool = True,
    dims: Mapping[str, int] | None = None,
) -> Program:
    """A model, optimised for torch, a step a node."""
    options = CompileOptions(device, dtype, fix_defaults, dims=dims)
    given = load(source)
    return _program(given, _optimised(given, options), options)


@dataclass(frozen=True)
class _Chosen:
    """The model as given, as optimised, and the program with the kernels it is to run."""

    given: LoadedModel
    optimised: LoadedModel
    program: Program


def _choices(source: ModelSource, options: CompileOptions, stage: Stage) -> Iterator[_Chosen]:
    """A model with the fastest kernels; then, for who cannot use these, with plainer ones.

    Kernels that do with fewer multiplications round more, and some models make much of that.
    """
    stage("reading")
    given = load(source)
    stage("optimising")
    plain = _plain(given, options)
    if not options.tune:
        yield plain
        return
    for attempt, providers in enumerate(ever_plainer()):
        if attempt:
            names = ", ".join(each.name for each in providers)
            warnings.warn(f"{PLAINER} {names}", KernelWarning, stacklevel=2)
        stage("choosing kernels")
        program, _ = tuned(plain.program, TuningSettings(providers))
        yield replace(plain, program=program)


def _plain(given: LoadedModel, options: CompileOptions) -> _Chosen:
    """A model whose program is a step a node."""
    optimised = _optimised(given, options)
    return _Chosen(given, optimised, _program(given, optimised, options))


def _optimised(given: LoadedModel, options: CompileOptions) -> LoadedModel:
    if options.device not in DEVICES:
        raise RelayoutError(f"unknown device {options.device!r}; it may be {' or '.join(DEVICES)}")
    precision_of(options.dtype)  # refuses before any work is done
    # What rounds differently at a quantiser would be a step, so quantised parts stay as they are.
    terms = Terms(target=TORCH, dims=options.dims or {}, keeps_sums=True, recomputes=False)
    with paused_collector():
        return best_form(_readable(given, options), terms)


def _readable(given: LoadedModel, options: CompileOptions) -> LoadedModel:
    """A model that can be lowered."""
    loaded = without_defaults(given) if options.fix_defaults else given
    return expanded(editable(loaded), missing)


def _unchosen(given: LoadedModel, options: CompileOptions) -> ir.Model | None:
    """What compilers get on CUDA besides the model in other layouts: local rules alone applied."""
    if not options.device.startswith("cuda"):
        return None
    with paused_collector():
        return prepare(_readable(given, options), TORCH, options.dims or {}).simplified.ir


def _program(given: LoadedModel, optimised: LoadedModel, options: CompileOptions) -> Program:
    model, precision = optimised.ir, precision_of(options.dtype)
    name = "model" if given.path is None else given.path.name
    steps, dims, unchosen = eager_steps(model), options.dims or {}, _unchosen(given, options)
    return Program(model, steps, name, options.device, precision, dims, unchosen)


@contextmanager
def _written(program: Program, place: Path | None) -> Iterator[tuple[Path, Path]]:
    """The module of a program and its weights, in a folder that goes away again."""
    folder = None if place is None else place.parent
    with ExitStack() as stack:
        try:
            scratch = stack.enter_context(TemporaryDirectory(prefix=".relayout-", dir=folder))
            files = _write(program, Path(scratch) / (MODULE if place is None else place.name))
        except OSError as error:
            raise cannot_write(place or MODULE, reason_of(error)) from None
        yield files


def _write(program: Program, module: Path) -> tuple[Path, Path]:
    weights = module.with_suffix(WEIGHTS)
    source = write_source(program, weights.name)
    write_weights(weights, source.arrays())
    module.write_text(source.text, encoding="utf-8")
    return module, weights


def _place(output: str | PathLike[str]) -> Path:
    """Where a module goes, with its weights beside it; refuses where one of them could not."""
    module = Destination.of(output)
    if module.path is None or module.is_stream:
        raise cannot_write(output, "a module needs a file, with its weights in one beside it")
    Destination.of(module.path.with_suffix(WEIGHTS))
    return module.path


def _put(files: Iterable[Path], place: Path) -> tuple[Path, ...]:
    """Let files that lie in a folder beside their place have it: the module is the last."""
    places = {file: place.with_name(file.name) for file in files}
    hand_over([(file, Destination.of(at)) for file, at in reversed(places.items())])
    return tuple(places.values())


def _verdict(
    chosen: _Chosen, module: Path, options: CompileOptions, inputs: NumericOptions, stage: Stage
) -> NumericVerdict:
    stage("proving and comparing numbers")
    with ExitStack() as stack:
        given, optimised = chosen.given.path, module.with_name("optimised.onnx")
        if given is None:
            place = module.with_name("given.onnx")
            given = stack.enter_context(staged(chosen.given, place, changed=False)).path
        made = stack.enter_context(staged(chosen.optimised, optimised, changed=True)).path
        return compare_written(CompiledFiles(given, made, module), inputs, options)


def _set_threads(options: CompileOptions) -> None:
    """Torch has one number of threads for all that a process runs."""
    if options.threads is not None:
        torch.set_num_threads(options.threads)


def _build(given: LoadedModel, _way: str, options: CompileOptions, folder: Path) -> Path:
    """A module that is timed with the threads it is to run on."""
    threads = torch.get_num_threads()
    try:
        _set_threads(options)
        program = _plain(given, options).program
        program = tuned(program)[0] if options.tune else program
    finally:
        torch.set_num_threads(threads)
    return _write(program, folder / MODULE)[0]


def _open(module: Path, options: CompileOptions) -> Model:
    _set_threads(options)
    check_device(options.device)
    weights = read_weights(module.with_suffix(WEIGHTS))
    model: Model = module_of(module.read_text(encoding="utf-8")).load(weights, options.device)
    return model


CANDIDATES = Candidates((KERNELS,), _build, _open)
