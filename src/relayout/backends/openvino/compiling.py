"""The road of a model to OpenVINO: as given or optimised, whichever is faster."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from relayout.backends.array_model import ArrayModel
from relayout.backends.engine_files import EngineFiles
from relayout.backends.registry import OPENVINO_BACKEND
from relayout.errors import RelayoutError
from relayout.timing.engines import openvino_model
from relayout.verify.interface import Interface
from relayout.verify.runtimes import is_handed_over_as_bytes


class OpenVinoRun:
    """Runs a model by requests, of which each serves one thread at a time."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.free: deque[Any] = deque()

    def __call__(self, arrays: dict[str, Any]) -> list[Any]:
        try:
            request = self.free.pop()
        except IndexError:
            request = self.model.create_infer_request()
        try:
            return list(request.infer(arrays, share_inputs=True).values())
        finally:
            self.free.append(request)


def open_file(path: Path, interface: Interface, threads: int) -> ArrayModel:
    """A file as OpenVINO compiles it."""
    if interface.optional:
        raise RelayoutError("OpenVINO takes defaults of inputs as constants")
    if is_handed_over_as_bytes(interface):
        raise RelayoutError("OpenVINO takes no arrays of bfloat16 or float8")
    return ArrayModel(interface, OpenVinoRun(openvino_model(path, threads)))


FILES = EngineFiles("OpenVINO", OPENVINO_BACKEND, open_file)
CANDIDATES = FILES.candidates
compile_model = FILES.compile_model
write_module = FILES.write_module
