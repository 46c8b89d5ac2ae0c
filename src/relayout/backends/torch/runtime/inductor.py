"""Functions of tensors as single kernels of Inductor."""

from __future__ import annotations

import contextlib
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


class WeightedForward(torch.nn.Module):  # type: ignore[misc]  # torch is read without its types
    """A function of weights and operands as a module whose parameters are the weights."""

    def __init__(self, function: Callable[..., Any], w: Any) -> None:
        super().__init__()
        self.function = function
        for name, value in vars(w).items():
            if isinstance(value, torch.Tensor):
                value = torch.nn.Parameter(value.clone(), requires_grad=False)  # noqa: PLW2901
            setattr(self, name, value)

    def forward(self, *operands: Any) -> Any:
        return self.function(self, *operands)


class FrozenForward:
    """A function compiled by torch.compile when it is first called, its weights as constants.

    Inductor lays frozen weights out as its kernels want them. Where nothing can be compiled the
    function runs as it is, and a warning names the reason.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.compiled: Callable[..., Any] | None = None
        self.has_failed = False

    def __call__(self, w: Any, *operands: Any) -> Any:
        if self.has_failed:
            return self.function(w, *operands)
        try:
            if self.compiled is not None:
                return self.compiled(*operands)
            self.compiled = self.frozen(w)
            with self.freezing(w):
                return self.compiled(*operands)
        except RuntimeError as error:
            self.has_failed = True
            InductorKernel.report(str(error))
            return self.function(w, *operands)

    def frozen(self, w: Any) -> Callable[..., Any]:
        # Parameters that are made in inference mode cannot be traced.
        with torch.inference_mode(False):
            module = WeightedForward(self.function, w).eval()
        compiled: Callable[..., Any] = torch.compile(
            module, dynamic=False, options={"freezing": True}
        )
        return compiled

    @staticmethod
    def freezing(w: Any) -> Any:
        """On a CPU the setting for all of torch too, while a first call compiles.

        The option of torch.compile does not reach the part that decides which tensors are
        constants: with it alone a ConvNeXt is a quarter slower. On CUDA the setting is untried.
        """
        import torch._inductor.config as settings

        is_cpu = torch.device(w.device).type == "cpu"
        return settings.patch(freezing=True) if is_cpu else contextlib.nullcontext()
