"""Files run by LiteRT's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from relayout.backends.litert.flat_graph import FlatData
from relayout.errors import RelayoutError

DELEGATE = "DELEGATE"
COUNTED = -1
"""Stands for a length that callers may change."""
PLAIN_KERNELS = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


class LiteModel:
    """A model for LiteRT: call it with numpy arrays, by name or in order.

    It gives a dict of its outputs by name. `content` is what a .tflite file holds. Without
    `delegates` all of it is run by LiteRT's own kernels, none by XNNPACK's.
    """

    def __init__(self, content: bytes | Path, threads: int = 1, *, delegates: bool = True) -> None:
        self.content = content.read_bytes() if isinstance(content, Path) else content
        kernels = OpResolverType.AUTO if delegates else PLAIN_KERNELS
        self._interpreter = Interpreter(
            model_content=self.content,
            num_threads=threads,
            experimental_op_resolver_type=kernels,
        )
        self._interpreter.allocate_tensors()
        self._inputs = {each["name"]: each for each in self._interpreter.get_input_details()}
        self._outputs = {each["name"]: each for each in self._interpreter.get_output_details()}

    def __repr__(self) -> str:
        inputs = ", ".join(
            f"{name} {one['shape_signature'].tolist()}" for name, one in self._inputs.items()
        )
        return f"<{type(self).__name__} {inputs} -> {', '.join(self._outputs)}>"

    @property
    def inputs(self) -> list[str]:
        return list(self._inputs)

    @property
    def outputs(self) -> list[str]:
        return list(self._outputs)

    @property
    def partitions(self) -> int:
        """How many parts of the model XNNPACK runs."""
        return self._builtins().count(DELEGATE)

    def _builtins(self) -> list[str]:
        details = self._interpreter._get_ops_details()  # noqa: SLF001 - there is no other way
        return [each["op_name"] for each in details]

    def __call__(self, *arguments: Any, **named: Any) -> dict[str, FlatData]:
        given = self._named(arguments) | named
        missing = [name for name in self._inputs if name not in given]
        strange = [name for name in given if name not in self._inputs]
        if missing or strange:
            problem = f"lacks {missing}" if missing else f"has no input {strange[0]!r}"
            raise RelayoutError(f"the call {problem}; inputs are {self.inputs}")
        arrays = {name: _array(given[name], details) for name, details in self._inputs.items()}
        self._resize(arrays)
        for name, details in self._inputs.items():
            self._interpreter.set_tensor(details["index"], arrays[name])
        self._interpreter.invoke()
        return {
            name: self._interpreter.get_tensor(details["index"])
            for name, details in self._outputs.items()
        }

    def _resize(self, arrays: Mapping[str, FlatData]) -> None:
        """Give inputs with open lengths those of their arrays."""
        resized = False
        for name, details in self._inputs.items():
            shape = list(arrays[name].shape)
            if COUNTED in details["shape_signature"] and shape != details["shape"].tolist():
                self._interpreter.resize_tensor_input(details["index"], shape, strict=True)
                resized = True
        if resized:
            self._interpreter.allocate_tensors()
            self._inputs = {each["name"]: each for each in self._interpreter.get_input_details()}

    def _named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            return dict(arguments[0])
        if len(arguments) > len(self._inputs):
            raise RelayoutError(f"the model has {len(self._inputs)} inputs")
        return dict(zip(self._inputs, arguments, strict=False))


def _array(value: Any, details: Mapping[str, Any]) -> FlatData:
    return np.ascontiguousarray(value, details["dtype"])
