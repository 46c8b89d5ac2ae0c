"""The road of a model to ONNX Runtime: as given or optimised, whichever is faster."""

from __future__ import annotations

from pathlib import Path

from relayout.backends.array_model import ArrayModel
from relayout.backends.engine_files import EngineFiles
from relayout.backends.registry import ORT_BACKEND
from relayout.timing.engines import ort_session
from relayout.verify.interface import Interface
from relayout.verify.runtimes import is_handed_over_as_bytes, run_on_bytes


def open_file(path: Path, interface: Interface, threads: int) -> ArrayModel:
    """A file in a session, which several threads may run at once."""
    session = ort_session(path, threads)
    if is_handed_over_as_bytes(interface):
        return ArrayModel(interface, lambda arrays: run_on_bytes(session, arrays))
    return ArrayModel(interface, lambda arrays: session.run(None, arrays))


FILES = EngineFiles("ONNX Runtime", ORT_BACKEND, open_file)
CANDIDATES = FILES.candidates
compile_model = FILES.compile_model
write_module = FILES.write_module
