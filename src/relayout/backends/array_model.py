"""Compiled models that compute on numpy arrays, called like those that compute on tensors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

import ml_dtypes
import numpy as np
import onnx

from relayout.errors import RelayoutError
from relayout.verify.interface import Interface, Port

ArrayRun: TypeAlias = Callable[[dict[str, Any]], list[Any]]
"""From arrays by the names of inputs to the outputs in their order; several threads may call it."""

TENSORS = "torch"
"""The module whose tensors are taken, if somebody has imported it."""

NO_PICKLE = (
    "a compiled model cannot be pickled, since its runtime cannot: compile it in the process that "
    "runs it, which takes less time there, as what was measured is kept"
)


class _Forks:
    """How many forks this process comes from since this was imported.

    A look at it is no call of the system, which would show in the time of a small model.
    """

    def __init__(self) -> None:
        self.count = 0
        os.register_at_fork(after_in_child=self._add)

    def _add(self) -> None:
        self.count += 1


_FORKS = _Forks()


class ArrayModel:
    """A compiled model: call it with numpy arrays or tensors, by name or in order.

    It gives a dict of its outputs by name: tensors if it was given tensors, else numpy arrays.
    Several threads may call it at once. A process that was forked from the one that compiled it may
    not, since the threads of its runtime are not in that process.
    """

    def __init__(self, interface: Interface, run: ArrayRun) -> None:
        self._ports = {port.name: port for port in (*interface.required, *interface.optional)}
        self._dtypes = {name: _dtype(port) for name, port in self._ports.items()}
        self._taken: dict[str, tuple[Any, Any]] = dict.fromkeys(self._ports, (None, None))
        """By input the type and the lengths of the array that was taken last: others like it are
        taken as they are."""
        self._required = [port.name for port in interface.required]
        self.outputs = [port.name for port in interface.outputs]
        self._run = run
        self._forks = _FORKS.count

    def __repr__(self) -> str:
        inputs = ", ".join(f"{port.name} {_shape(port)}" for port in self._ports.values())
        return f"<{type(self).__name__} {inputs} -> {', '.join(self.outputs)}>"

    @property
    def inputs(self) -> list[str]:
        return list(self._ports)

    def __call__(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        if self._forks != _FORKS.count:
            raise RelayoutError("the model was compiled in the process that this one is a fork of")
        given = {**self._named(arguments), **named} if named else self._named(arguments)
        if given.keys() != self._ports.keys():
            self._check_names(given)
        results = self._run({name: self._operand(name, value) for name, value in given.items()})
        if TENSORS in sys.modules and any(map(_is_tensor, given.values())):
            results = [_as_tensor(result) for result in results]
        return dict(zip(self.outputs, results, strict=True))

    def _check_names(self, given: Mapping[str, Any]) -> None:
        unknown = [name for name in given if name not in self._ports]
        if unknown:
            raise TypeError(f"there is no input {unknown[0]!r}; the inputs are {self.inputs}")
        missing = [name for name in self._required if name not in given]
        if missing:
            raise TypeError(f"input {missing[0]!r} is missing")

    def __reduce__(self) -> NoReturn:
        raise TypeError(NO_PICKLE)

    def _named(self, arguments: tuple[Any, ...]) -> Mapping[str, Any]:
        """Inputs in their order, or a mapping of them, by name."""
        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            return arguments[0]
        if len(arguments) > len(self._ports):
            raise TypeError(f"{len(arguments)} inputs were given; there are {len(self._ports)}")
        return dict(zip(self._ports, arguments, strict=False))

    def _operand(self, name: str, value: Any) -> Any:
        """An input as an array, checked against what the model declares."""
        is_plain = type(value) is np.ndarray and value.flags.c_contiguous
        if is_plain and (value.dtype, value.shape) == self._taken[name]:
            return value
        array, port, dtype = _as_array(value), self._ports[name], self._dtypes[name]
        if dtype is None:
            return array
        if array.dtype != dtype and port.element != onnx.TensorProto.STRING:
            raise TypeError(f"input {name!r} has type {array.dtype}, not {dtype}")
        if not _fits(array.shape, port):
            shape = list(port.dims or ())
            raise ValueError(f"input {name!r} has shape {list(array.shape)}, not {shape}")
        self._taken[name] = (array.dtype, array.shape)
        return array


def _dtype(port: Port) -> Any:
    """The type of the arrays that an input takes; None where it takes other things."""
    if port.kind != "tensor" or port.element == onnx.TensorProto.UNDEFINED:
        return None
    return onnx.helper.tensor_dtype_to_np_dtype(port.element)


def _shape(port: Port) -> str:
    return port.kind if port.dims is None else str([*port.dims]).replace("'", "")


def _fits(shape: tuple[int, ...], port: Port) -> bool:
    """Whether lengths are those that are declared, as far as they are numbers."""
    if port.dims is None:
        return True
    return len(shape) == len(port.dims) and all(
        not isinstance(length, int) or length == own
        for length, own in zip(port.dims, shape, strict=True)
    )


def _is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch; who gives one has imported torch."""
    torch = sys.modules.get(TENSORS)
    return torch is not None and isinstance(value, torch.Tensor)


def _as_array(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_array(item) for item in value]
    if value is None:
        return None
    if not _is_tensor(value):
        return np.asarray(value, order="C")
    held = value.detach().cpu().contiguous()
    name = str(held.dtype).removeprefix("torch.")
    if not hasattr(ml_dtypes, name):
        return held.numpy()
    words = held.view(getattr(sys.modules[TENSORS], f"uint{8 * held.element_size()}"))
    return words.numpy().view(getattr(ml_dtypes, name))


def _as_tensor(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_tensor(item) for item in value]
    if value is None:
        return None
    torch, array = sys.modules[TENSORS], np.asarray(value)
    if not hasattr(ml_dtypes, array.dtype.name):
        return torch.as_tensor(array)
    words = torch.as_tensor(array.view(f"uint{8 * array.itemsize}"))
    return words.view(getattr(torch, array.dtype.name))
