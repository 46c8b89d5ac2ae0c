"""Runs a written module in this process."""

from __future__ import annotations

import linecache
import sys
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from relayout.backends.torch.modules.source import Source, write_source
from relayout.backends.torch.program.program import Program
from relayout.backends.torch.runtime.model import as_tensor
from relayout.errors import RelayoutError

if TYPE_CHECKING:
    from relayout.backends.torch.runtime.model import Model

_numbers = count(1)


def compile_program(program: Program) -> Model:
    """The model that a program describes, ready to be called."""
    return loaded(write_source(program), program.device)


def loaded(source: Source, device: str) -> Model:
    """The model of a written module, with its weights, on a device."""
    check_device(device)
    weights = {name: as_tensor(array, "cpu") for name, array in source.arrays().items()}
    model: Model = module_of(source.text).load(weights, device)
    return model


def check_device(device: str) -> None:
    """Refuse a device that is not here."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise RelayoutError("there is no CUDA device here")


def module_of(text: str) -> Any:
    """A module of source text; tracebacks show its lines."""
    name = f"relayout_torch_{next(_numbers)}"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = sys.modules[name] = ModuleType(name)  # torch.compile looks functions up there
    exec(compile(text, file, "exec"), vars(module))
    return module
