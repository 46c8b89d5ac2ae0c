"""A model as torch.compile makes it, with freezing: its nodes in torch, compiled as one module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from relayout.backends.torch.compiling import program_of
from relayout.backends.torch.modules.loading import loaded
from relayout.backends.torch.modules.source import write_source
from relayout.timing.engines import Feeds, RunModel


class Whole(torch.nn.Module):  # type: ignore[misc]  # torch is read without its types
    """All nodes of a model, with its weights as parameters that freezing takes in."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.nodes = model.forward
        for name, value in vars(model.weights).items():
            if isinstance(value, torch.Tensor):
                self.register_parameter(name, torch.nn.Parameter(value.clone(), False))
            else:
                setattr(self, name, value)

    def forward(self, *operands: Any) -> Any:
        return self.nodes(self, *operands)


def inductor_run(path: Path, threads: int) -> RunModel:
    """The model, compiled when it is first called."""
    import torch._inductor.config as settings  # noqa: PLC0415 - takes seconds

    torch.set_num_threads(threads)
    model = loaded(write_source(program_of(path)), "cpu")
    torch._dynamo.reset()  # noqa: SLF001 - there is no public name
    compiled = torch.compile(Whole(model).eval(), dynamic=False)
    names = list(model.inputs)

    def run(feeds: Feeds) -> Any:
        tensors = [torch.as_tensor(feeds[name]) for name in names]
        with torch.no_grad(), settings.patch(freezing=True):
            return compiled(*tensors)

    return run
