"""Models as callables, by whichever backend was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relayout.backends.options import CompileOptions
from relayout.backends.registry import BACKENDS, TORCH_BACKEND, Backend
from relayout.graph.io.sources import ModelSource
from relayout.verify.verdict import NumericOptions


def compile(  # noqa: A001 - the word for it
    source: ModelSource,
    *,
    target: str | Backend = TORCH_BACKEND,
    device: str = "cpu",
    dtype: str | None = None,
    fix_defaults: bool = True,
    tune: bool = True,
    verify: bool = True,
    dims: Mapping[str, int] | None = None,
    inputs: NumericOptions | None = None,
) -> Any:
    """A callable that does what a model does, optimised for its backend and verified.

    It takes numpy arrays or tensors, by the names of the model's inputs or in their order, and
    gives a dict of its outputs in kind. `target` is the name of a backend or a `Backend`. `dtype`
    ("float16" or "bfloat16") is what float32 is computed in instead; inputs and outputs keep their
    types. Weights that the model lists among its inputs are constants, unless `fix_defaults` is
    false, which lets them be given at each call. Unless `tune` is false, groups of operators run as
    the fastest kernels that were found on the device, once timed and then known. They are timed
    with `dims` as the lengths of symbols, or else with a batch of 1. A backend that needs to know
    all lengths takes them from `dims` and from the shapes of `inputs`.

    Before it returns, what was compiled is compared with the given model in a process of its own,
    on `inputs` as for `optimize`; a `VerificationError` is raised where they differ or cannot be
    compared. `verify=False` leaves that out.
    """
    backend = BACKENDS.of(target)
    numbers = inputs or NumericOptions()
    if dims:
        numbers = replace(numbers, dims={**dims, **numbers.dims})
    options = CompileOptions(
        device,
        dtype,
        fix_defaults,
        tune,
        dims,
        numbers.shapes,
        numbers if verify else None,
    )
    return backend.compiler(source, options)
