"""Functions of tensors as single kernels of Inductor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class InductorKernel:
    """A function compiled by torch.compile when it is first called.

    Where nothing can be compiled, for want of a compiler, the function runs as it is, and a warning
    names the reason.
    """

    def __init__(self, function: Callable[..., Any], *, dynamic: bool = True) -> None:
        self.function = function
        self.compiled: Callable[..., Any] | None = torch.compile(function, dynamic=dynamic)

    def __call__(self, *operands: Any) -> Any:
        if self.compiled is not None:
            try:
                return self.compiled(*operands)
            except RuntimeError as error:
                self.compiled = None
                self.report(str(error))
        return self.function(*operands)

    @staticmethod
    def report(reason: str) -> None:
        """Warn the user; Python shows the same warning once."""
        import warnings

        lines = [line.strip() for line in reason.splitlines() if line.strip()]
        text = "torch does the work of kernels of Inductor: "
        warnings.warn(text + (lines[0] if lines else "no reason given"), stacklevel=4)
