"""Ways to run a model file: ONNX Runtime, unoptimised or not, and the reference evaluator."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from relayout.verify.messages import message_of
from relayout.verify.smooth import smooth

if TYPE_CHECKING:
    from pathlib import Path

    from relayout.verify.interface import Interface

Level = onnxruntime.GraphOptimizationLevel
Feeds = Mapping[str, Any]
Run = Callable[[Feeds], list[Any]]

# ONNX Runtime holds tensors of these types and numpy arrays of none of them.
HANDED_OVER_AS_BYTES = (
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.FLOAT8E4M3FN,
    onnx.TensorProto.FLOAT8E4M3FNUZ,
    onnx.TensorProto.FLOAT8E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ,
)
SIGNS_OF_EXHAUSTION = ("bad_alloc", "Failed to allocate memory", "Unable to allocate")
FOLDER_OF_DATA = "session.model_external_initializers_file_folder_path"
LONGEST_MESSAGE = 300
SILENT = 4


@dataclass(frozen=True)
class Derived:
    """A model made of a file: its message, and the folder in which external data lies."""

    message: bytes
    folder: Path


Runnable: TypeAlias = "Path | Derived"
"""What a runtime opens."""


class RefusedError(Exception):
    """A runtime cannot load a model, or cannot run it on some inputs."""


class ExhaustedError(MemoryError):
    """A runtime ran out of memory."""


@dataclass(frozen=True)
class Runtime:
    """`load` makes of a model file a function from inputs to outputs in their declared order."""

    name: str
    open: Callable[[Runnable, Interface], Run]

    def load(self, source: Runnable, interface: Interface) -> Run:
        run = _guarded(self.open, source, interface)
        return lambda feeds: _guarded(run, feeds)


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    # Both runtimes raise exceptions of any class, as their operators please.
    try:
        return function(*arguments)
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, MemoryError) or any(s in message for s in SIGNS_OF_EXHAUSTION):
            raise ExhaustedError(message[:LONGEST_MESSAGE]) from error
        raise RefusedError(message[:LONGEST_MESSAGE]) from error


def read(source: Runnable) -> onnx.ModelProto:
    """The message of a model; external data stays where it is."""
    if isinstance(source, Derived):
        return onnx.load_model_from_string(source.message)
    return onnx.load(source, load_external_data=False)


def seen(source: Runnable) -> onnx.ModelProto:
    """As `read`, for those who only look at it: the message of a file is shared."""
    return read(source) if isinstance(source, Derived) else message_of(source)


def folder_of(source: Runnable) -> Path:
    return source.folder if isinstance(source, Derived) else source.parent


def derived(model: onnx.ModelProto, source: Runnable) -> Derived:
    """A model made of another one, whose external data it shares."""
    return Derived(bytes(model.SerializeToString()), folder_of(source))


def _open_onnxruntime(source: Runnable, interface: Interface) -> Run:
    return _open_session(source, interface, Level.ORT_DISABLE_ALL)


def _open_extended(source: Runnable, interface: Interface) -> Run:
    return _open_session(source, interface, Level.ORT_ENABLE_EXTENDED)


def _open_smooth(source: Runnable, interface: Interface) -> Run:
    model = smooth(read(source), folder_of(source))
    return _open_session(derived(model, source), interface, Level.ORT_DISABLE_ALL)


def _open_session(source: Runnable, interface: Interface, level: Any) -> Run:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = SILENT
    options.enable_cpu_mem_arena = False
    if isinstance(source, Derived):
        options.add_session_config_entry(FOLDER_OF_DATA, str(source.folder))
    model = source.message if isinstance(source, Derived) else str(source)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    if is_handed_over_as_bytes(interface):
        return lambda feeds: run_on_bytes(session, feeds)
    return lambda feeds: list(session.run(None, feeds))


def is_handed_over_as_bytes(interface: Interface) -> bool:
    ports = (*interface.required, *interface.optional, *interface.outputs)
    return any(port.element in HANDED_OVER_AS_BYTES for port in ports)


def run_on_bytes(session: onnxruntime.InferenceSession, feeds: Feeds) -> list[Any]:
    """The results of a session with inputs or outputs of a type that numpy does not have."""
    given = {name: _to_ort(array) for name, array in feeds.items()}
    return [_from_ort(value) for value in session.run_with_ort_values(None, given)]


def _to_ort(array: Any) -> onnxruntime.OrtValue:
    element = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    if element not in HANDED_OVER_AS_BYTES:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    words = array.view(np.uint16 if array.itemsize == 2 else np.uint8)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(words, element)


def _from_ort(value: onnxruntime.OrtValue) -> Any:
    element = value.element_type()
    if element not in HANDED_OVER_AS_BYTES:
        return value.numpy()
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    size = math.prod(value.shape()) * dtype.itemsize
    raw = ctypes.string_at(value.data_ptr(), size)
    return np.frombuffer(raw, dtype).reshape(value.shape())


def _open_reference(source: Runnable, interface: Interface) -> Run:
    del interface
    if isinstance(source, Derived):
        model = read(source)
        onnx.load_external_data_for_model(model, str(source.folder))
        evaluator = ReferenceEvaluator(model)
    else:
        evaluator = ReferenceEvaluator(str(source))
    return lambda feeds: list(evaluator.run(None, dict(feeds)))


ONNX_RUNTIME = Runtime("ONNX Runtime", _open_onnxruntime)
EXTENDED = Runtime("ONNX Runtime at its extended level", _open_extended)
SMOOTH = Runtime("ONNX Runtime", _open_smooth)
"""Runs the smooth version of a model, or refuses since it has none."""

REFERENCE = Runtime("the reference evaluator", _open_reference)

RUNTIMES: Sequence[Runtime] = (ONNX_RUNTIME, REFERENCE)
