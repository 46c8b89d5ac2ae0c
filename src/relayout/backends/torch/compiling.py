"""Models as programs that torch runs, and as modules that need nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import onnx
from onnx.external_data_helper import load_external_data_for_model
from onnx.inliner import inline_local_functions, inline_selected_functions

from relayout.backends.torch.choose.tuning import tuned
from relayout.backends.torch.lower.registry import missing
from relayout.backends.torch.modules.loading import compile_program
from relayout.backends.torch.modules.source import write_source
from relayout.backends.torch.modules.weights import write_weights
from relayout.backends.torch.program.dtypes import precision_of
from relayout.backends.torch.program.program import Program, eager_steps
from relayout.backends.torch.runtime.model import Model
from relayout.errors import RelayoutError, quoted
from relayout.graph.collector import paused_collector
from relayout.graph.io.defaults import without_defaults
from relayout.graph.io.limits import OLDEST_OPSET
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.opset import raise_opset
from relayout.graph.io.sources import ModelSource
from relayout.graph.read import version_of
from relayout.optimizer.pipeline import learn_shapes, local_rules
from relayout.targets.target import ONNX

DEVICES = ("cpu", "cuda")
TORCH = "torch"


def compile(  # noqa: A001 - the word for it
    source: ModelSource,
    *,
    target: str = TORCH,
    device: str = "cpu",
    dtype: str | None = None,
    fix_defaults: bool = True,
    tune: bool = True,
    dims: Mapping[str, int] | None = None,
) -> Model:
    """A callable that does what a model does, in torch.

    It takes numpy arrays or tensors, by the names of the model's inputs or in their order, and
    gives a dict of its outputs in kind. `dtype` ("float16" or "bfloat16") is what float32 is
    computed in instead; inputs and outputs keep their types. Weights that the model lists among
    its inputs are constants, unless `fix_defaults` is false, which lets them be given at each call.
    Unless `tune` is false, groups of operators run as the fastest kernels that were found on the
    device, once timed and then known. They are timed with `dims` as the lengths of symbols, or else
    with a batch of 1.
    """
    program = program_of(
        source, target=target, device=device, dtype=dtype, fix_defaults=fix_defaults, dims=dims
    )
    return compile_program(tuned(program)[0] if tune else program)


def write_module(program: Program, output: str | PathLike[str]) -> tuple[Path, Path]:
    """Write what `compile` would run as a module, with its weights beside it."""
    module = Path(output)
    weights = module.with_suffix(".safetensors")
    written = write_source(program, weights.name)
    try:
        write_weights(weights, written.arrays())
        module.write_text(written.text, encoding="utf-8")
    except OSError as error:
        raise RelayoutError(f"cannot write {quoted(str(module))}: {error.strerror}") from None
    return module, weights


def program_of(
    source: ModelSource,
    *,
    target: str = TORCH,
    device: str = "cpu",
    dtype: str | None = None,
    fix_defaults: bool = True,
    dims: Mapping[str, int] | None = None,
) -> Program:
    """A model in the steps in which torch is to run it."""
    if target != TORCH:
        raise RelayoutError(f"cannot compile for {target!r}; the only target is {TORCH!r}")
    if device not in DEVICES:
        raise RelayoutError(f"unknown device {device!r}; it may be {' or '.join(DEVICES)}")
    precision = precision_of(dtype)
    loaded = load(source)
    loaded = expanded(_editable(without_defaults(loaded) if fix_defaults else loaded))
    with paused_collector():
        learn_shapes(loaded.ir)
        local_rules(ONNX).run(loaded.ir)
    name = "model" if loaded.path is None else loaded.path.name
    return Program(loaded.ir, eager_steps(loaded.ir), name, device, precision, dims or {})


def _editable(loaded: LoadedModel) -> LoadedModel:
    """The model in an opset that can be worked on: onnx converts what is older."""
    version = version_of({entry.domain: entry.version for entry in loaded.source.opset_import}, "")
    if loaded.frozen is None:
        return loaded
    if not 0 < version < OLDEST_OPSET:
        raise RelayoutError(f"the model cannot be compiled: {loaded.frozen}")
    raised = load(raise_opset(loaded.source, OLDEST_OPSET))
    raised.path = loaded.path
    return raised


def expanded(loaded: LoadedModel) -> LoadedModel:
    """The model with functions in the place of their calls.

    Those are the functions of the model, and operators without a lowering that onnx defines as
    functions of others.
    """
    lacking = [] if loaded.source.functions else missing(loaded.ir)
    if not loaded.source.functions and not lacking:
        return loaded
    message = onnx.ModelProto()
    message.CopyFrom(loaded.source)
    if loaded.path is not None:
        load_external_data_for_model(message, str(loaded.path.parent))
    try:
        message = (
            inline_local_functions(message)
            if loaded.source.functions
            else inline_selected_functions(message, lacking, inline_schema_functions=True)
        )
    except RuntimeError:  # onnx cannot state every operator that it defines as a function
        return loaded
    inlined = load(message)
    inlined.path = loaded.path
    return expanded(inlined) if missing(inlined.ir) != lacking else inlined
