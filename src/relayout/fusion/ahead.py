"""What is computed before any kernel runs: from constants and from lengths alone.

Given   s = Shape(x); n = Gather(s, 0); t = Concat(n, c); y = Reshape(x, t); w = Transpose(v)
Result  s, n, t and w run ahead; the kernel of y has t as a parameter if the lengths are known now

Nothing is edited: such nodes stay in the file as they are, they only belong to no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, is_op, is_standard, shape_of
from relayout.graph.region import Region, subgraphs_of
from relayout.layout.blocks import Size
from relayout.ops.lengths.entries import Entries, count_of
from relayout.ops.measure import item_bytes
from relayout.ops.registry import facts_of

SMALL_BYTES = 1 << 20
"""A constant up to this size may be kept though it is larger than what it is made from."""


@dataclass(slots=True)
class Ahead:
    """What is known of the values of a model before any kernel runs."""

    known: dict[ir.Value, ir.TensorProtocol | None] = field(default_factory=dict)
    """The same in every run."""
    nodes: set[ir.Node] = field(default_factory=set)
    """What computes these, and small vectors of integers that depend on lengths only."""
    _counted: set[ir.Value] = field(default_factory=set)
    """Known as soon as the lengths of the inputs are."""
    _entries: dict[ir.Value, Entries] = field(default_factory=dict)

    @classmethod
    def of(cls, regions: Iterable[Region]) -> Ahead:
        """Outer graphs come before the ones they contain, which read their values."""
        ahead = cls()
        for region in regions:
            for node in region.graph:
                ahead._visit(region.view(node))
        return ahead

    def _visit(self, view: NodeView) -> None:
        node = view.node
        if is_op(node, "Constant") or not _is_computed_alike(view):
            return
        self._learn_entries(view)
        results = [value for value in node.outputs if value.name]
        if self._is_known(view, results):
            self.known.update((value, self._tensor(value)) for value in results)
        elif self._is_counted(view, results):
            self._counted.update(results)
        else:
            return
        self.nodes.add(node)

    def _learn_entries(self, view: NodeView) -> None:
        compute = facts_of(view.node).lengths.entries
        count = count_of(view.node.outputs[0])
        found = None if compute is None or count is None else compute(view, self._entries)
        if found is not None and len(found) == count:
            self._entries[view.node.outputs[0]] = found

    def _is_known(self, view: NodeView, results: list[ir.Value]) -> bool:
        if self._tensor(results[0]) is not None:
            return True
        given = [value for value in view.node.inputs if value is not None]
        if not given or not all(map(self._is_constant, given)):
            return False
        made, read = map(_bytes_of, (results, given))
        return made is not None and made <= max(SMALL_BYTES, read or 0)

    def _is_counted(self, view: NodeView, results: list[ir.Value]) -> bool:
        if any(count_of(value) is None for value in results):
            return False
        given = (value for value in view.node.inputs if value is not None)
        reads_lengths = is_op(view.node, "Shape", "Size")
        return reads_lengths or all(v in self._counted or self._is_constant(v) for v in given)

    def _is_constant(self, value: ir.Value) -> bool:
        return constant_of(value) is not None or value in self.known

    def _tensor(self, value: ir.Value) -> ir.TensorProtocol | None:
        """What a small vector of integers holds, where no entry depends on a length."""
        entries, shape = self._entries.get(value), shape_of(value)
        if entries is None or shape is None or value.dtype is None:
            return None
        if not all(entry is not None and not entry.symbols for entry in entries):
            return None
        numbers = [entry.number for entry in entries if isinstance(entry, Size)]
        array = np.asarray(numbers, value.dtype.numpy())
        return ir.Tensor(array if shape else array.reshape(()))


def _is_computed_alike(view: NodeView) -> bool:
    """Whether a node computes its results from its operands alone, in every run alike."""
    node = view.node
    is_declared = is_standard(node) and facts_of(node).computes_only
    if not is_declared or facts_of(node).numbers.draws or any(subgraphs_of(node)):
        return False
    if view.unknown_attribute is not None:
        return False
    tensors = [value for value in node.outputs if value.name]
    return bool(tensors) and all(isinstance(v.type, ir.TensorType) for v in tensors)


def _bytes_of(values: Iterable[ir.Value]) -> int | None:
    """The size of values together; None where a length is not known."""
    total = 0
    for value in values:
        tensor = constant_of(value)
        shape = shape_of(value) if tensor is None else tuple(tensor.shape)
        dtype = value.dtype if tensor is None else tensor.dtype
        lengths = [length for length in shape or () if isinstance(length, int)]
        if shape is None or dtype is None or len(lengths) < len(shape):
            return None
        total += math.ceil(math.prod(lengths) * item_bytes(dtype))
    return total
