"""A sample is one node with data; the law test and the coverage test are generated from samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx.defs

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """One node at one opset version.

    `inputs` are the operands (None: left out). Those listed in `constants` are initialisers, the
    others are graph inputs. `admits` is the least number of orders (besides the identity) that the
    rule must accept, so that a rule which refuses everything cannot pass.
    """

    op_type: str
    version: int
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: frozenset[int] = frozenset()
    outputs: int = 1
    domain: str = ""
    admits: int | None = None
    """None: every order."""
    unused: frozenset[int] = frozenset()
    """Results that are left out (an empty name)."""
    note: str = ""
    runtime: str = "reference"
    """`ort` where onnx's reference evaluator is wrong or has no kernel."""
    tolerance: float = 0.0
    """Relative; 0 asks for equal bytes."""

    @property
    def id(self) -> str:
        shapes = "x".join(
            "-" if x is None else str(list(x.shape)).replace(" ", "") for x in self.inputs
        )
        return f"{self.op_type}-{self.version}-{shapes}{'-' + self.note if self.note else ''}"


def counting(*shape: int, dtype: Any = np.float32, start: int = 1) -> Array:
    """Distinct integers in a mixed order: any misplaced element shows, and sums stay exact."""
    size = int(np.prod(shape))
    return (
        np.random.default_rng(size)
        .permutation(np.arange(start, start + size))
        .reshape(shape)
        .astype(dtype)
    )


def small(*shape: int, dtype: Any = np.float32, low: int = -2, high: int = 3) -> Array:
    """Small integers: products and sums of them are exact in any order."""
    return np.random.default_rng(int(np.prod(shape)) + 7).integers(low, high, shape).astype(dtype)


def unit(*shape: int, dtype: Any = np.float32) -> Array:
    """Values strictly between 0 and 1."""
    return np.random.default_rng(int(np.prod(shape)) + 13).uniform(0.05, 0.95, shape).astype(dtype)


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def versions(op_type: str, domain: str = "", oldest: int = 7) -> list[int]:
    """The opset versions, from `oldest` on, at which an operator's definition changed."""
    since = {
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name == op_type and schema.domain == domain and not schema.deprecated
    }
    return sorted({max(version, oldest) for version in since if _in_force(version, since, oldest)})


def _in_force(version: int, since: set[int], oldest: int) -> bool:
    return version >= oldest or version == max(v for v in since if v <= oldest)
