"""Functions of tensors as CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Replayed:
    """A function as one CUDA graph for each set of operands that look alike.

    A graph launches all kernels at once. It reads and writes memory of its own, so operands are
    copied in and results are copied out, by one thread at a time.
    """

    def __init__(self, forward: Callable[..., Any]) -> None:
        import threading

        self.forward = forward
        self.graphs: dict[Any, tuple[Any, list[Any], Any]] = {}
        self.lock = threading.Lock()

    def __call__(self, w: Any, *operands: Any) -> Any:
        if not all(x.is_cuda for x in operands):
            return self.forward(w, *operands)
        key = tuple((x.shape, x.stride(), x.dtype) for x in operands)
        with self.lock:
            if key not in self.graphs:
                self.graphs[key] = self._captured(w, operands)
            graph, given, results = self.graphs[key]
            for own, x in zip(given, operands, strict=True):
                own.copy_(x)
            graph.replay()
            return tuple(result.clone() for result in results)

    def _captured(self, w: Any, operands: tuple[Any, ...]) -> tuple[Any, list[Any], Any]:
        given = [x.clone() for x in operands]
        graph, results = captured_graph(lambda: self.forward(w, *given))
        return graph, given, results


def captured_graph(run: Callable[[], Any]) -> tuple[Any, Any]:
    """A CUDA graph of what a function does, and the results it writes.

    cuDNN tries its kernels while the function is run for the first time.
    """
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = run()
    finally:
        torch.backends.cudnn.benchmark = before
    return graph, results
