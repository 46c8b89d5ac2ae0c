"""The object that a written module gives to its user."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch


def read_weights(path: Path) -> dict[str, Any]:
    """The tensors of a file in the safetensors format."""
    names = {
        "BOOL": torch.bool,
        "U8": torch.uint8,
        "U16": torch.uint16,
        "U32": torch.uint32,
        "U64": torch.uint64,
        "I8": torch.int8,
        "I16": torch.int16,
        "I32": torch.int32,
        "I64": torch.int64,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "F32": torch.float32,
        "F64": torch.float64,
        "C64": torch.complex64,
        "C128": torch.complex128,
        "F8_E4M3": torch.float8_e4m3fn,
        "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
        "F8_E5M2": torch.float8_e5m2,
        "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
        "F8_E8M0": torch.float8_e8m0fnu,
    }
    data = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        dtype, (first, last) = names[entry["dtype"]], entry["data_offsets"]
        part = torch.empty(0, dtype=torch.uint8)
        if last > first:
            part = torch.frombuffer(
                data, dtype=torch.uint8, count=last - first, offset=start + first
            )
        tensors[name] = part.clone().view(dtype).reshape(entry["shape"])
    return tensors


def as_tensor(value: Any, device: Any) -> Any:
    """A numpy array (also of a type of ml_dtypes), a tensor or a list of them, on a device."""
    if isinstance(value, list | tuple):
        return [as_tensor(item, device) for item in value]
    if value is None or isinstance(value, torch.Tensor):
        return value if value is None else value.to(device)
    if not getattr(getattr(value, "flags", None), "writeable", True):
        value = value.copy()
    dtype: Any = getattr(value, "dtype", None)
    # Numpy is slow to name a type, and its own need no name here.
    name = "" if getattr(dtype, "isbuiltin", 1) == 1 else dtype.name
    if name in {"int2", "int4", "uint2", "uint4"}:  # held as bytes
        value = value.astype("int8" if name[0] == "i" else "uint8")
    if name == "float4_e2m1fn":  # held in a byte likewise
        value, name = value.astype("float8_e4m3fn"), "float8_e4m3fn"
    if name == "bfloat16" or name.startswith("float8"):
        words = torch.as_tensor(value.view(f"uint{8 * value.itemsize}"))
        return words.view(getattr(torch, name)).to(device)
    return torch.as_tensor(value, device=device)


def as_array(value: Any, dtype: str) -> Any:
    """A tensor, or a list of them, as numpy arrays; `dtype` is the type the model gives it."""
    if isinstance(value, list):
        return [as_array(item, dtype) for item in value]
    if value is None:
        return None
    value = value.cpu()
    name = str(value.dtype).removeprefix("torch.")
    is_held_as_bytes = dtype in {"int2", "int4", "uint2", "uint4"}
    if name != "bfloat16" and not name.startswith("float8") and not is_held_as_bytes:
        return value.numpy()
    import ml_dtypes

    if is_held_as_bytes:
        return value.numpy().astype(getattr(ml_dtypes, dtype))
    if dtype == "float4e2m1":
        return value.to(torch.float32).numpy().astype(ml_dtypes.float4_e2m1fn)
    words = value.contiguous().view(torch.uint16 if value.element_size() == 2 else torch.uint8)
    return words.numpy().view(getattr(ml_dtypes, name))


class Model:
    """A compiled model: call it with numpy arrays or tensors, by name or in order.

    It gives a dict of its outputs by name: tensors if it was given tensors, else numpy arrays.
    Several threads may call it; a fork of the process may not, as the threads of torch stay behind.
    """

    def __init__(
        self,
        forward: Callable[..., tuple[Any, ...]],
        prepare: Callable[[Any], None],
        weights: Mapping[str, Any],
        *,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, str],
        device: str,
        mode: Callable[[], Any],
    ) -> None:
        self.forward = forward
        self.mode = mode
        self.inputs = inputs
        self.outputs = outputs
        self.device = torch.device(device)
        self.process = os.getpid()
        on_device = {name: tensor.to(self.device) for name, tensor in weights.items()}
        self.weights = SimpleNamespace(device=self.device, **on_device)
        with torch.inference_mode():
            prepare(self.weights)

    def __call__(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        if os.getpid() != self.process:
            raise RuntimeError("the model was loaded in the process that this one is a fork of")
        given = self._named(arguments) | named
        unknown = [name for name in given if name not in self.inputs]
        if unknown:
            raise TypeError(f"there is no input {unknown[0]!r}; the inputs are {list(self.inputs)}")
        tensors = [self._operand(name, given) for name in self.inputs]
        with self.mode():
            results = self.forward(self.weights, *tensors)
        if any(isinstance(value, torch.Tensor) for value in given.values()):
            return dict(zip(self.outputs, results, strict=True))
        pairs = zip(self.outputs.items(), results, strict=True)
        return {name: as_array(result, dtype) for (name, dtype), result in pairs}

    def __reduce__(self) -> Any:
        raise TypeError(
            "a compiled model cannot be pickled, since its kernels cannot: compile it, or load the "
            "module that was written of it, in the process that runs it"
        )

    def _named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """Inputs in their order, or a dict of them, by name."""
        if len(arguments) == 1 and isinstance(arguments[0], dict):
            return arguments[0]
        if len(arguments) > len(self.inputs):
            raise TypeError(f"{len(arguments)} inputs were given; there are {len(self.inputs)}")
        return dict(zip(self.inputs, arguments, strict=False))

    def _operand(self, name: str, given: Mapping[str, Any]) -> Any:
        """An input as `forward` wants it, checked against what the model declares."""
        dtypes, shape, default = self.inputs[name]
        if name not in given:
            if default is None:
                raise TypeError(f"input {name!r} is missing")
            return getattr(self.weights, default)
        value = as_tensor(given[name], self.device)
        if not isinstance(value, torch.Tensor):
            return value
        if dtypes and value.dtype not in dtypes:
            raise TypeError(f"input {name!r} has type {value.dtype}, not {dtypes[0]}")
        if shape is not None and value.shape != shape and not self._fits(value.shape, shape):
            raise ValueError(f"input {name!r} has shape {list(value.shape)}, not {list(shape)}")
        return value

    @staticmethod
    def _fits(own: Any, shape: Any) -> bool:
        """Whether lengths are those that are declared, as far as they are numbers."""
        return len(shape) == len(own) and all(
            not isinstance(length, int) or length == each
            for length, each in zip(shape, own, strict=True)
        )
