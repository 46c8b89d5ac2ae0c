"""Pairs of models written out, and what is proved of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from relayout.verify.proof.proof import prove
from relayout.verify.proof.verdict import ModelProof

Array = np.ndarray[Any, Any]
OPEN_LENGTHS = {"n": 2, "m": 4, "k": 3}
"""What open lengths are where a pair is run."""


@dataclass(frozen=True)
class Pair:
    """Two bodies that compute y of the same inputs; each may have constants of its own."""

    inputs: str
    before: str
    after: str
    opset: int = 18
    constants: Mapping[str, Array] = field(default_factory=dict)
    """Of both; a name that ends with ' is of the second alone, without that sign."""
    functions: str = ""
    runs: bool = True
    """Whether the reference can run both."""

    def models(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        return self._model(self.before, second=False), self._model(self.after, second=True)

    def _model(self, body: str, *, second: bool) -> onnx.ModelProto:
        domains = f'"": {self.opset}, "relayout": 1, "com.microsoft": 1'
        head = f"<ir_version: 9, opset_import: [{domains}]>"
        text = f"{head} g ({self.inputs}) => (float y) {{ {body} }} {self.functions}"
        model = parser.parse_model(text)
        held = {name: array for name, array in self.constants.items() if not name.endswith("'")}
        if second:
            held |= {n[:-1]: array for n, array in self.constants.items() if n.endswith("'")}
        model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in held.items())
        return model

    def proof(self, folder: Path) -> ModelProof:
        paths = [folder / name for name in ("before.onnx", "after.onnx")]
        for path, model in zip(paths, self.models(), strict=True):
            onnx.save(model, path)
        return prove(*paths)

    def results(self) -> list[Array]:
        """What both give for the same inputs."""
        models = self.models()
        feeds = feeds_of(models[0])
        return [
            np.asarray(next(iter(ReferenceEvaluator(model).run(None, feeds)))) for model in models
        ]


def feeds_of(model: onnx.ModelProto) -> dict[str, Array]:
    return {port.name: _drawn(port) for port in model.graph.input}


def _drawn(port: onnx.ValueInfoProto) -> Array:
    tensor = port.type.tensor_type
    shape = [dim.dim_value or OPEN_LENGTHS[dim.dim_param] for dim in tensor.shape.dim]
    drawn = np.random.default_rng(crc32(port.name.encode())).normal(0, 2, shape)
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return (drawn > 0).astype(kind) if kind == np.bool_ else drawn.astype(kind)


def ramp(*shape: int) -> Array:
    """Numbers that all differ."""
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 3) / 4


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)
