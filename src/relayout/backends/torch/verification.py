"""Written modules compared with the model they were made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from relayout.backends import comparing
from relayout.backends.options import CompileOptions
from relayout.backends.torch.runtime.model import Model
from relayout.verify.difference import TOLERANCES
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
