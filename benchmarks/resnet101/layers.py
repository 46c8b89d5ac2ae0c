"""A network as a list of layers, in the words of ONNX, from which each runtime gets its form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Attribute = int | float | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator: which values it reads, which weights, and the value it writes."""

    op_type: str
    inputs: tuple[str, ...]
    output: str
    weights: tuple[str, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(slots=True)
class Network:
    """Layers and weights, written down by the functions of `networks`.

    Weights are drawn from a generator with a fixed seed, scaled so that activations keep about
    their size from layer to layer: they stay finite in half precision and never become denormal.
    """

    name: str
    channels: int = 3
    layers: list[Layer] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)
    source: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    INPUT = "image"
    OUTPUT = "scores"

    def conv(
        self,
        value: str,
        depths: tuple[int, int],
        size: int,
        *,
        stride: int = 1,
        groups: int = 1,
        pad: int | None = None,
        biased: bool = False,
    ) -> str:
        """A convolution; before a normalisation it has no bias."""
        shape = (depths[1], depths[0] // groups, size, size)
        scale = math.sqrt(2 / math.prod(shape[1:]))
        border = (size - 1) // 2 if pad is None else pad
        attributes: dict[str, Attribute] = {
            "kernel_shape": (size, size),
            "strides": (stride, stride),
            "pads": (border,) * 4,
            "group": groups,
        }
        weights = [self._weight(self._normal(shape, scale))]
        if biased:
            weights.append(self._weight(self._normal((depths[1],), 0.1)))
        return self._add("Conv", (value,), tuple(weights), attributes)

    def norm(self, value: str, depth: int, gain: float = 1.0) -> str:
        """A BatchNormalization with statistics as training leaves them: different per channel."""
        scale = gain * self.source.uniform(0.8, 1.2, depth)
        statistics = (
            scale,
            self.source.normal(0, 0.1, depth),
            self.source.normal(0, 0.1, depth),
            self.source.uniform(1.5, 2.5, depth),
        )
        weights = tuple(self._weight(each.astype(np.float32)) for each in statistics)
        return self._add("BatchNormalization", (value,), weights, {"epsilon": 1e-5})

    def layer_norm(self, value: str, depth: int) -> str:
        scale = self.source.uniform(0.8, 1.2, depth).astype(np.float32)
        weights = (self._weight(scale), self._weight(self._normal((depth,), 0.1)))
        return self._add("LayerNormalization", (value,), weights, {"axis": -1, "epsilon": 1e-6})

    def linear(self, value: str, depths: tuple[int, int]) -> str:
        """A product with a matrix and a bias, over the last axis."""
        matrix = self._weight(self._normal(depths, math.sqrt(1 / depths[0])))
        product = self._add("MatMul", (value,), (matrix,))
        return self._add("Add", (product,), (self._weight(self._normal((depths[1],), 0.1)),))

    def classify(self, value: str, depths: tuple[int, int]) -> None:
        matrix = self._weight(self._normal((depths[1], depths[0]), math.sqrt(1 / depths[0])))
        bias = self._weight(self._normal((depths[1],), 0.1))
        self._add("Gemm", (value,), (matrix, bias), {"transB": 1}, output=self.OUTPUT)

    def scaled(self, value: str, depth: int, gain: float) -> str:
        """The learned gain per channel at the end of a block, channels in the second place."""
        gains = gain * self.source.uniform(0.8, 1.2, (depth, 1, 1)).astype(np.float32)
        return self._add("Mul", (value,), (self._weight(gains),))

    def transpose(self, value: str, perm: tuple[int, ...]) -> str:
        return self._add("Transpose", (value,), attributes={"perm": perm})

    def max_pool(self, value: str, size: int, stride: int) -> str:
        attributes: dict[str, Attribute] = {
            "kernel_shape": (size, size),
            "strides": (stride, stride),
            "pads": ((size - 1) // 2,) * 4,
        }
        return self._add("MaxPool", (value,), attributes=attributes)

    def apply(self, op_type: str, *values: str) -> str:
        """An operator without weights and attributes."""
        return self._add(op_type, values)

    def clip6(self, value: str) -> str:
        bounds = (np.array(0, np.float32), np.array(6, np.float32))
        return self._add("Clip", (value,), tuple(self._weight(bound) for bound in bounds))

    def _add(
        self,
        op_type: str,
        inputs: tuple[str, ...],
        weights: tuple[str, ...] = (),
        attributes: Mapping[str, Attribute] | None = None,
        output: str | None = None,
    ) -> str:
        written = output or f"v{len(self.layers)}"
        self.layers.append(Layer(op_type, inputs, written, weights, attributes or {}))
        return written

    def _weight(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def _normal(self, shape: tuple[int, ...], scale: float) -> Array:
        drawn = self.source.standard_normal(shape, np.float32)
        return np.asarray(drawn * np.float32(scale), np.float32)
