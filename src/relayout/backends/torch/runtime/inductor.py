"""Functions of tensors as single kernels of Inductor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class InductorKernel:
    """A function compiled by torch.compile when it is first called.

    Where nothing can be compiled, for want of a compiler, the function runs as it is.
    """

    def __init__(self, function: Callable[..., Any], *, dynamic: bool = True) -> None:
        self.function = function
        self.compiled: Callable[..., Any] | None = torch.compile(function, dynamic=dynamic)

    def __call__(self, *operands: Any) -> Any:
        if self.compiled is not None:
            try:
                return self.compiled(*operands)
            except RuntimeError:
                self.compiled = None
        return self.function(*operands)
