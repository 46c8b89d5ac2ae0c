"""Models as callables, by whichever backend was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relayout.backends.fastest.builds import all_backends
from relayout.backends.fastest.compiling import compile_fastest
from relayout.backends.options import CompileOptions
from relayout.backends.registry import BACKENDS, TORCH_BACKEND, Backend
from relayout.errors import RelayoutError
from relayout.graph.io.sources import ModelSource
from relayout.verify.verdict import NumericOptions

AUTO = "auto"
"""In place of a backend: the fastest of those that are installed."""


def compile(  # noqa: A001 - the word for it
    source: ModelSource,
    *,
    backend: str | Backend | None = None,
    target: str | Backend | None = None,
    device: str = "cpu",
    dtype: str | None = None,
    fix_defaults: bool = True,
    tune: bool = True,
    verify: bool = True,
    dims: Mapping[str, int] | None = None,
    inputs: NumericOptions | None = None,
    threads: int | None = None,
) -> Any:
    """A callable that does what a model does, optimised for its backend and verified.

    It takes numpy arrays or tensors, by the names of the model's inputs or in their order, and
    gives a dict of its outputs in kind. `backend` is the name of a backend or a `Backend`, torch
    unless given; `target` is another word for it. "auto" builds the model for all backends that are
    installed, times them in turns, and takes the fastest that is verified; what was measured is
    kept for the model, the machine and the versions. `threads` is how many threads it runs on; of
    torch, the number that the whole process has. `dtype`
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
    chosen = asked_backends(backend, target)
    numbers = inputs or NumericOptions()
    if dims:
        numbers = replace(numbers, dims={**dims, **numbers.dims})
    options = CompileOptions(
        device,
        dtype,
        fix_defaults,
        tune,
        numbers.dims,
        numbers.shapes,
        numbers if verify else None,
        threads,
    )
    if len(chosen) == 1:
        return chosen[0].compiler(source, options)
    return compile_fastest(chosen, source, options)


def asked_backends(
    backend: str | Backend | None, target: str | Backend | None = None
) -> tuple[Backend, ...]:
    """The backend that was asked for, or all of them."""
    if backend is not None and target is not None:
        raise RelayoutError("backend and target are words for the same: give one of them")
    asked = backend if backend is not None else target
    return all_backends() if asked == AUTO else (BACKENDS.of(asked or TORCH_BACKEND),)
