"""Compiled models on drawn inputs: compared with the file they came from, or just run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from relayout.backends import comparing
from relayout.backends.options import CompileOptions
from relayout.backends.torch.runtime.model import Model
from relayout.errors import RelayoutError, quoted
from relayout.verify.bindings import open_dims, ports_to_try
from relayout.verify.difference import TOLERANCES
from relayout.verify.inputs import Draw, draw_feeds, undrawable
from relayout.verify.interface import Interface, Port, UnreadableModelError, interface_of
from relayout.verify.isolated import default_memory, verdict_of
from relayout.verify.runtimes import Run
from relayout.verify.verdict import NumericOptions, NumericVerdict

TF32_TOLERANCE = 1e-3
"""On CUDA torch lets convolutions multiply in TF32, with 10 bits of mantissa."""


@dataclass(frozen=True)
class CompiledFiles:
    """A model as given, as optimised, and the module that computes it."""

    given: Path
    optimised: Path
    module: Path


def compare_written(
    files: CompiledFiles,
    inputs: NumericOptions,
    options: CompileOptions,
) -> NumericVerdict:
    """As `compare_compiled` for a written module, in a process of its own.

    The optimised model that the module was made of is proved to be the given one, if it can be.
    """
    device = options.device
    if inputs.tolerance is None:
        inputs = replace(inputs, tolerance=_tolerance(options))
    paths = {name: str(path.resolve()) for name, path in asdict(files).items()}
    settings = {"device": device, "fixed": options.fix_defaults, "options": inputs.to_json()}
    # CUDA maps far more addresses than it uses, so there they cannot be limited.
    memory = None if device.startswith("cuda") else default_memory(inputs, files.given)
    return verdict_of("relayout.backends.torch.worker", paths | settings, memory=memory)


def _tolerance(options: CompileOptions) -> float | None:
    """The largest error of what a model is computed in; None for that of its own types."""
    if options.dtype is not None:
        return TOLERANCES[options.dtype]
    return TF32_TOLERANCE if options.device.startswith("cuda") else None


def compare_compiled(
    path: Path, model: Model, options: NumericOptions, *, fixed: bool = True
) -> NumericVerdict:
    """Whether a compiled model computes what a file states, as far as runs can show."""
    return comparing.compare_compiled(path, "torch", lambda: _runner(model), options, fixed=fixed)


def _runner(model: Model) -> Run:
    return lambda feeds: list(model(dict(feeds)).values())


def drawn_feeds(path: Path, options: NumericOptions) -> dict[str, Any]:
    """Normal numbers for the inputs of a model; every open length must have been named."""
    try:
        interface = interface_of(path)
    except UnreadableModelError as error:
        raise RelayoutError(str(error)) from None
    ports = next(iter(ports_to_try(interface.required, options)))
    for port in ports:
        if undrawable(port):
            raise RelayoutError(f"no values can be drawn for input {quoted(port.name)}")
    lengths = [_length(dim.name, ports) for dim in open_dims(ports)]
    if lengths:
        raise RelayoutError(f"the model leaves lengths open; name them: {' '.join(lengths)}")
    return _drawn(interface, ports, options)


def _length(name: str, ports: Any) -> str:
    """The option that names a length."""
    is_nameless = any(name.startswith(f"{port.name}[") for port in ports)
    return f"--dim '{name}=…'" if is_nameless else f"--dim {name}=…"


def _drawn(
    interface: Interface, ports: tuple[Port, ...], options: NumericOptions
) -> dict[str, Any]:
    return draw_feeds(interface, ports, {}, Draw("normal", normal=True), options)
