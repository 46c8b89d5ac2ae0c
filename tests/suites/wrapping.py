"""Backend tests fed in other orders: a Transpose after every input and before every output."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.suites.backend import Case, _rename

FIRST_WITH_DEFAULTS = 4
"""The IR version from which an initialiser need not be an input."""


@dataclass(frozen=True, slots=True)
class Variant:
    """In which orders a test is fed, and whether its settings are constants."""

    order: str
    constants: bool

    @property
    def id(self) -> str:
        return f"{self.order}{', constants' if self.constants else ''}"

    def perm(self, rank: int) -> list[int]:
        """The order that the Transpose after an input of this rank makes."""
        if self.order == "rotation" or rank == 2:
            return [*range(1, rank), 0]
        return [0, rank - 1, *range(1, rank - 1)]


VARIANTS = tuple(
    Variant(order, constants) for constants in (False, True) for order in ("channels", "rotation")
)


def wrapped(given: Case, variant: Variant) -> Case | None:
    """The test in a variant; None if there is nothing to wrap."""
    model = copy.deepcopy(given.model)
    wrapping = _Wrapping(model.graph, variant, [_copied(pair) for pair in given.data])
    if variant.constants:
        wrapping.fix_settings()
        model.ir_version = max(model.ir_version, FIRST_WITH_DEFAULTS)
    wrapping.wrap_inputs()
    wrapping.wrap_outputs()
    if not wrapping.names:
        return None
    wrapping.finish()
    if not any(opset.domain in {"", "ai.onnx"} for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("", 21))
    return replace(given, model=model, data=wrapping.data)


Pair = tuple[list[Any], list[Any]]


@dataclass(slots=True)
class _Wrapping:
    """Edits a graph and its data together."""

    graph: onnx.GraphProto
    variant: Variant
    data: list[Pair]
    names: dict[str, str] = field(default_factory=dict)
    first: list[onnx.NodeProto] = field(default_factory=list)
    last: list[onnx.NodeProto] = field(default_factory=list)

    def fix_settings(self) -> None:
        """Make constants of the inputs of rank 0 and 1, except the first, where one value serves.

        The suite feeds axes, pads and scales as inputs, which models in use hold as constants.
        """
        count = min(len(self.graph.input), *(len(inputs) for inputs, _ in self.data))
        for place in reversed(range(1, count)):
            value = self.graph.input[place]
            given = [inputs[place] for inputs, _ in self.data]
            if self._is_open(value) and _is_setting(given):
                constant = numpy_helper.from_array(np.asarray(given[0]), value.name)
                self.graph.initializer.append(constant)
                del self.graph.input[place]
                for inputs, _ in self.data:
                    del inputs[place]

    def wrap_inputs(self) -> None:
        for place, value in enumerate(self.graph.input):
            rank = self._rank([inputs for inputs, _ in self.data], place)
            if rank is None or not self._is_open(value):
                continue
            order = self.variant.perm(rank)
            self._turn(value, [inputs for inputs, _ in self.data], place, order)
            self.first.append(
                helper.make_node("Transpose", [value.name], [self._new(value)], perm=order)
            )

    def wrap_outputs(self) -> None:
        inputs = {value.name for value in self.graph.input}
        for place, value in enumerate(self.graph.output):
            rank = self._rank([outputs for _, outputs in self.data], place)
            if rank is None or value.name in inputs or value.name in self.names:
                continue
            order = self.variant.perm(rank)
            self._turn(value, [outputs for _, outputs in self.data], place, order)
            back = np.argsort(order).tolist()
            self.last.append(
                helper.make_node("Transpose", [self._new(value)], [value.name], perm=back)
            )

    def finish(self) -> None:
        _rename(self.graph, self.names)
        nodes = [*self.first, *self.graph.node, *self.last]
        del self.graph.node[:], self.graph.value_info[:]
        self.graph.node.extend(nodes)

    def _is_open(self, value: onnx.ValueInfoProto) -> bool:
        fixed = {tensor.name for tensor in self.graph.initializer}
        fixed |= {tensor.values.name for tensor in self.graph.sparse_initializer}
        return value.type.HasField("tensor_type") and value.name not in fixed

    def _rank(self, sets: Sequence[list[Any]], place: int) -> int | None:
        """The rank, if it is 2 or more in every set of data."""
        ranks = {np.ndim(values[place]) if _is_tensor(values, place) else 0 for values in sets}
        return ranks.pop() if len(ranks) == 1 and min(ranks) >= 2 else None

    def _turn(
        self, value: onnx.ValueInfoProto, sets: Sequence[list[Any]], place: int, order: list[int]
    ) -> None:
        """Declare and feed a value in the order from which `order` leads to the given one."""
        back = np.argsort(order).tolist()
        for values in sets:
            values[place] = np.ascontiguousarray(values[place].transpose(back))
        dims = [copy.deepcopy(dim) for dim in value.type.tensor_type.shape.dim]
        if len(dims) == len(back):
            del value.type.tensor_type.shape.dim[:]
            value.type.tensor_type.shape.dim.extend(dims[axis] for axis in back)

    def _new(self, value: onnx.ValueInfoProto) -> str:
        return self.names.setdefault(value.name, f"{value.name}__wrapped")


def _copied(pair: tuple[list[Any], list[Any]]) -> Pair:
    inputs, outputs = pair
    return [*inputs], [*outputs]


def _is_tensor(values: list[Any], place: int) -> bool:
    return place < len(values) and isinstance(values[place], np.ndarray)


def _is_setting(given: Sequence[Any]) -> bool:
    """Whether all sets of data have the same tensor of rank 0 or 1."""
    if not all(isinstance(x, np.ndarray | np.generic) and x.ndim <= 1 for x in given):
        return False
    return all(np.array_equal(x, given[0]) for x in given)
