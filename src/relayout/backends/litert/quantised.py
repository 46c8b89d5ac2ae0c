"""Builtins between quantisers, computed on bytes with the steps that the quantisers have.

A builtin that reads what DEQUANTIZE makes, and whose result only QUANTIZE reads, becomes one on
int8 with a bias in int32. Bytes without a sign are shifted by 128: LiteRT has kernels for int8
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from relayout.backends.litert.flat_graph import (
    FlatData,
    FlatGraph,
    FlatOperator,
    FlatTensor,
    Quantisation,
)
from relayout.backends.litert.fusing import BIAS, LINEAR, WEIGHT
from relayout.backends.litert.moved_bytes import MOVES, quantised_first

INT8, UINT8 = np.dtype(np.int8), np.dtype(np.uint8)
BYTES = frozenset({INT8, UINT8})
SHIFT = 128
TWIN = "/int8"
"""Ends the names of tensors that hold as int8 what the model has as bytes without a sign."""

ANY_STEPS = frozenset({"ADD", "SUB", "MUL", "MEAN", "LEAKY_RELU", "HARD_SWISH", "RELU", "RELU6"})
"""Builtins whose operands and results may each have steps of their own."""
SAME_STEPS = frozenset(
    {
        *("RESHAPE", "TRANSPOSE", "MAX_POOL_2D", "AVERAGE_POOL_2D", "SLICE", "STRIDED_SLICE"),
        *("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR", "PAD", "GATHER", "SPLIT", "SPLIT_V"),
        *("CONCATENATION", "MAXIMUM", "MINIMUM"),
    }
)
"""Builtins that move, choose or mix numbers: operands are brought to the steps of the result."""
FIXED_STEPS = {
    "LOGISTIC": Quantisation((1 / 256,), (-128,)),
    "SOFTMAX": Quantisation((1 / 256,), (-128,)),
    "TANH": Quantisation((1 / 128,), (0,)),
}
"""Builtins with one way to quantise their results."""


def on_bytes(graph: FlatGraph) -> FlatGraph:
    """The graph with as much of it on bytes as its quantisers ask for."""
    if not graph.count("QUANTIZE"):
        return graph
    graph.operators = _Quantising(quantised_first(graph)).run()
    graph.remove_dead()
    return graph


@dataclass(slots=True)
class _Quantising:
    graph: FlatGraph
    made: list[FlatOperator] = field(default_factory=list)
    producers: dict[FlatTensor, FlatOperator] = field(default_factory=dict)
    readers: dict[FlatTensor, list[FlatOperator]] = field(default_factory=dict)
    signed: dict[FlatTensor, FlatTensor] = field(default_factory=dict)
    """By tensors of bytes, the same numbers as int8."""
    moved: dict[FlatTensor, FlatTensor] = field(default_factory=dict)
    """By tensors of floats that were moved, the int8 that they would be quantised to."""

    def run(self) -> list[FlatOperator]:
        self.readers = self.graph.consumers()
        for operator in self.graph.operators:
            self.producers.update(dict.fromkeys(operator.outputs, operator))
        for operator in self.graph.operators:
            self._take(operator)
        return self.made

    def _take(self, operator: FlatOperator) -> None:
        if operator.builtin == "QUANTIZE" and operator.outputs[0] in self.signed:
            return  # its group was computed on bytes
        if operator.builtin == "QUANTIZE" and operator.outputs[0].dtype == UINT8:
            self._put(replace(operator, outputs=(self._twin(operator.outputs[0]),)))
            self._restore(operator.outputs[0])
            return
        if operator.builtin == "DEQUANTIZE" and operator.inputs[0] in self.signed:
            self._put(replace(operator, inputs=(self.signed[operator.inputs[0]],)))
            return
        results = self._results(operator)
        if self._moves_bytes(operator):
            self._move(operator)
        elif results is None or not self._computed(operator, results):
            self._put(operator)

    def _put(self, operator: FlatOperator) -> None:
        self.made.append(operator)

    def _twin(self, tensor: FlatTensor) -> FlatTensor:
        """The tensor that holds as int8 what this one does."""
        if tensor not in self.signed:
            twin = tensor
            if tensor.dtype == UINT8 and tensor.steps is not None:
                name = f"{tensor.name}{TWIN}"
                twin = FlatTensor(name, tensor.shape, INT8, steps=_shifted(tensor.steps))
            self.signed[tensor] = twin
        return self.signed[tensor]

    def _restore(self, tensor: FlatTensor) -> None:
        """Bytes without a sign, for what reads them as such."""
        twin = self.signed[tensor]
        if twin is not tensor:
            self._put(FlatOperator("QUANTIZE", (twin,), (tensor,)))

    def _moves_bytes(self, operator: FlatOperator) -> bool:
        """Whether a builtin works on bytes as the model has it."""
        tensor = operator.inputs[0] if operator.inputs else None
        is_known = tensor in self.signed and operator.builtin in SAME_STEPS
        return is_known and all(each.dtype == UINT8 for each in operator.outputs)

    def _move(self, operator: FlatOperator) -> None:
        inputs = tuple(
            self.signed[t] if t is not None and t in self.signed else t for t in operator.inputs
        )
        first = operator.inputs[0]
        for each in operator.outputs:
            each.steps = each.steps or (None if first is None else first.steps)
        self._put(
            replace(operator, inputs=inputs, outputs=tuple(map(self._twin, operator.outputs)))
        )
        for each in operator.outputs:
            self._restore(each)

    def _results(self, operator: FlatOperator) -> list[FlatTensor] | None:
        """The bytes that results are quantised to, if nothing else reads them."""
        found = []
        for tensor in operator.outputs:
            readers = self.readers.get(tensor, [])
            steps = {each.outputs[0].steps for each in readers if each.builtin == "QUANTIZE"}
            kinds = {each.builtin for each in readers}
            if tensor in self.graph.outputs or kinds != {"QUANTIZE"} or len(steps) != 1:
                return None
            if len({each.outputs[0].dtype for each in readers}) != 1:
                return None
            found.append(readers[0].outputs[0])
        return found if all(t.dtype in BYTES for t in found) else None

    def _computed(self, operator: FlatOperator, results: Sequence[FlatTensor]) -> bool:
        """Compute a builtin on bytes, where it has a kernel for that; whether it has."""
        outputs = [self._twin_steps(tensor) for tensor in results]
        steps = {each for each in outputs if each is not None}
        if len(steps) != 1 or None in outputs:
            return False
        wanted = steps.pop()
        inputs = self._operands(operator, wanted)
        if inputs is None:
            return False
        twins = tuple(map(self._twin, results))
        self._put(replace(operator, inputs=inputs, outputs=twins))
        for tensor, result, twin in zip(operator.outputs, results, twins, strict=True):
            for reader in self.readers[tensor]:
                self.signed[reader.outputs[0]] = twin
            self._restore(result)
        return True

    def _twin_steps(self, tensor: FlatTensor) -> Quantisation | None:
        if tensor.steps is None or len(tensor.steps.scales) != 1:
            return None
        return _shifted(tensor.steps) if tensor.dtype == UINT8 else tensor.steps

    def _operands(
        self, operator: FlatOperator, wanted: Quantisation
    ) -> tuple[FlatTensor | None, ...] | None:
        name = operator.builtin
        if name in LINEAR:
            return self._layer(operator)
        if name in ANY_STEPS or FIXED_STEPS.get(name) == wanted:
            return self._each(operator, None)
        return self._each(operator, wanted) if name in SAME_STEPS else None

    def _each(
        self, operator: FlatOperator, wanted: Quantisation | None
    ) -> tuple[FlatTensor | None, ...] | None:
        """Operands as bytes, brought to some steps if asked; parameters stay as they are."""
        found: list[FlatTensor | None] = []
        waiting: list[FlatOperator] = []
        for tensor in operator.inputs:
            if tensor is None or tensor.dtype != np.float32:
                found.append(tensor)
                continue
            narrow = self._bytes_of(tensor)
            if narrow is None or narrow.steps is None:
                return None
            if wanted is not None and narrow.steps != wanted:
                again = FlatTensor(f"{operator.outputs[0].name}/{narrow.name}", narrow.shape, INT8)
                again.steps = wanted
                # XNNPACK goes from bytes to bytes with factors of 8 bits, which shows.
                waiting.append(FlatOperator("QUANTIZE", (tensor,), (again,)))
                narrow = again
            found.append(narrow)
        self.made.extend(waiting)
        return tuple(found)

    def _bytes_of(self, tensor: FlatTensor) -> FlatTensor | None:
        """The int8 tensor that numbers came from, or a constant as int8."""
        if tensor.data is not None:
            return _constant(tensor)
        if tensor in self.moved:
            return self.moved[tensor]
        producer = self.producers.get(tensor)
        source = None if producer is None else producer.inputs[0]
        if producer is None or source is None:
            return None
        if producer.builtin in MOVES:
            return self._moved(producer)
        if producer.builtin != "DEQUANTIZE":
            return None
        if source in self.signed:
            return self.signed[source]
        return source if source.dtype == INT8 and source.steps is not None else None

    def _moved(self, operator: FlatOperator) -> FlatTensor | None:
        """What a builtin that computes nothing makes of bytes."""
        tensor, result = operator.inputs[0], operator.outputs[0]
        narrow = None if tensor is None else self._bytes_of(tensor)
        if narrow is None:
            return None
        made = FlatTensor(f"{result.name}{TWIN}", result.shape, INT8, steps=narrow.steps)
        self._put(replace(operator, inputs=(narrow, *operator.inputs[1:]), outputs=(made,)))
        self.moved[result] = made
        return made

    def _layer(self, operator: FlatOperator) -> tuple[FlatTensor | None, ...] | None:
        """Operands of a layer: bytes, a weight whose steps have no shift, a bias in int32."""
        places = LINEAR[operator.builtin]
        tensor, weight = operator.inputs[0], operator.inputs[places[WEIGHT]]
        bias = operator.inputs[places[BIAS]] if len(operator.inputs) > places[BIAS] else None
        if operator.builtin not in {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}:
            return None
        if tensor is None or weight is None or weight.data is None:
            return None
        if bias is not None and bias.data is None:
            return None
        narrow, filters = self._bytes_of(tensor), _constant(weight)
        if narrow is None or narrow.steps is None or filters is None or filters.steps is None:
            return None
        axis, steps = places["axis"], filters.steps
        if any(steps.zero_points) or (len(steps.scales) > 1 and steps.axis != axis):
            return None
        scale = narrow.steps.scales[0] * np.asarray(steps.scales, np.float64)
        return narrow, filters, _whole_bias(bias, weight, scale, weight.shape[axis])


def value_of(tensor: FlatTensor) -> str:
    """The value of the model whose bytes a tensor holds, if the model has one of this name."""
    return tensor.name.removesuffix(TWIN)


def _shifted(steps: Quantisation) -> Quantisation:
    return replace(steps, zero_points=tuple(zero - SHIFT for zero in steps.zero_points))


def _constant(tensor: FlatTensor) -> FlatTensor | None:
    """Numbers that lie on steps, as the bytes they came from."""
    steps, data = tensor.steps, tensor.data
    if steps is None or data is None:
        return None
    lengths = [1] * tensor.rank
    if len(steps.scales) > 1:
        lengths[steps.axis] = -1
    scale = np.asarray(steps.scales, np.float64).reshape(lengths)
    zero = np.asarray(steps.zero_points, np.int64).reshape(lengths)
    whole = np.rint(data / scale).astype(np.int64) + zero
    if whole.size and whole.max() > np.iinfo(np.int8).max:
        whole, steps = whole - SHIFT, _shifted(steps)
    if whole.size and (whole.max() > np.iinfo(np.int8).max or whole.min() < -SHIFT):
        return None
    return FlatTensor(f"{tensor.name}{TWIN}", tensor.shape, INT8, whole.astype(np.int8), steps)


def _whole_bias(
    bias: FlatTensor | None, weight: FlatTensor, scale: FlatData, outputs: int
) -> FlatTensor:
    """A bias in the steps of products, which is what sums of them are added to."""
    numbers = np.zeros(outputs) if bias is None or bias.data is None else bias.data
    whole = np.rint(numbers.astype(np.float64) / scale)
    data = np.clip(whole, np.iinfo(np.int32).min, np.iinfo(np.int32).max).astype(np.int32)
    name = f"{weight.name}/bias"
    steps = Quantisation(tuple(map(float, scale)), (0,) * scale.size)
    return FlatTensor(name, data.shape, data.dtype, data, steps)
