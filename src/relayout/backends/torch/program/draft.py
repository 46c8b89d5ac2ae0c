"""A module while it is being written: its weights, helpers and functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx_ir as ir

from relayout.backends.torch.program.dtypes import FULL, Precision
from relayout.backends.torch.program.names import PythonNames
from relayout.backends.torch.program.scalars import Host
from relayout.errors import RelayoutError, quoted

if TYPE_CHECKING:
    from relayout.backends.torch.program.call import Lowering

WEIGHTS = "w"
"""The name under which every function of the module has the weights."""


Helper: TypeAlias = Callable[..., Any]
"""A function or class of the runtime, copied into the module with what it uses."""


@dataclass
class ModuleDraft:
    """What is common to all functions of a module."""

    lowerings: Mapping[tuple[str, str], Lowering]
    precision: Precision = FULL
    names: PythonNames = field(default_factory=PythonNames)
    weights: dict[str, ir.TensorProtocol] = field(default_factory=dict)
    """By their names in the module."""
    prepared: list[tuple[str, str]] = field(default_factory=list)
    """Names and expressions of what is computed from the weights once, when they are loaded."""
    helpers: dict[str, Helper] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    """The source of functions at the top of the module."""
    _known: dict[object, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names.reserve((WEIGHTS, "NAME", "forward", "prepare", "load", "device"))

    def weight(self, tensor: ir.TensorProtocol, hint: str) -> str:
        """The expression of a weight; the same tensor is stored once."""
        key = id(tensor)
        if key not in self._known:
            if tensor.dtype == ir.DataType.STRING:
                raise RelayoutError(f"torch has no tensors of strings, as in {quoted(hint)}")
            name = self.names.fresh(hint)
            self.weights[name] = tensor
            self._known[key] = f"{WEIGHTS}.{name}"
        return self._known[key]

    def constant(self, host: Host) -> str:
        """The expression of a weight that holds known numbers."""
        key = (host.values, host.rank, host.dtype, tuple(map(type, host.values or ())))
        if key not in self._known:
            shape = () if host.rank == 0 else (len(host.items),)
            array = np.array(host.values, dtype=host.dtype.numpy()).reshape(shape)
            self._known[key] = self.weight(ir.tensor(array, dtype=host.dtype), "constant")
        return self._known[key]

    def prepare(self, hint: str, expression: str) -> str:
        """The expression of what is computed once from weights, which it names `w.…`.

        Weights that only such expressions name are dropped when all of them have been made.
        """
        name = self.names.fresh(hint)
        self.prepared.append((name, expression))
        return f"{WEIGHTS}.{name}"

    def function(self, hint: str, text: str) -> str:
        """The name of a function at the top, `NAME` in `text`; equal ones are written once."""
        if text not in self._known:
            name = self._known[text] = self.names.fresh(hint)
            self.functions.append(re.sub(r"\bNAME\b", name, text))
        return self._known[text]

    def helper(self, helper: Helper) -> str:
        """The name of a helper, which the module will contain."""
        name = helper.__name__
        if name not in self.helpers:
            self.names.reserve((name,))
            self.helpers[name] = helper
        return name
