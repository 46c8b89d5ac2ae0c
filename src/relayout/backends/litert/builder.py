"""Puts builtins into a graph, within what their kernels can do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from relayout.backends.litert.collapse import (
    around_axis,
    broadcast_groups,
    grouped_axes,
    merged,
    moved_groups,
    two_moves,
)
from relayout.backends.litert.flat_graph import (
    FlatData,
    FlatGraph,
    FlatOperator,
    FlatShape,
    FlatTensor,
    Quantisation,
)
from relayout.backends.litert.limits import MOST_AXES, MOST_AXES_OF_ANY
from relayout.errors import RelayoutError

INT32 = np.dtype(np.int32)
FLOAT = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)


@dataclass(slots=True)
class GraphBuilder:
    """Every method adds builtins and gives their result; constants of small size are shared."""

    graph: FlatGraph
    scope: str = ""
    """The name that tensors in between are derived from."""
    values: dict[ir.Value, FlatTensor] = field(default_factory=dict)
    """By values of the model, the tensors that hold them."""
    _shared: dict[tuple[str, FlatShape, bytes], FlatTensor] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _viewed: dict[FlatTensor, FlatTensor] = field(default_factory=dict)
    """By the result of a RESHAPE, what it reads."""

    def name(self, wanted: str) -> str:
        """A name that no other tensor has."""
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def reserve(self, names: Sequence[str]) -> None:
        """Keep names for tensors that get them later."""
        self._names.update(names)

    def unshared(self, tensor: FlatTensor) -> FlatTensor:
        """A constant of its own, which may be given steps."""
        return FlatTensor(self.name(tensor.name), tensor.shape, tensor.dtype, tensor.data)

    def constant(self, data: Any, dtype: Any = None, hint: str = "constant") -> FlatTensor:
        array: FlatData = np.asarray(data, dtype)
        key = str(array.dtype), array.shape, array.tobytes() if array.size <= 1024 else b""
        if array.size <= 1024 and key in self._shared:
            return self._shared[key]
        tensor = FlatTensor(self.name(hint), array.shape, array.dtype, array)
        if array.size <= 1024:
            self._shared[key] = tensor
        return tensor

    def tensor(
        self, shape: FlatShape, dtype: Any, hint: str = "", steps: Quantisation | None = None
    ) -> FlatTensor:
        return FlatTensor(
            self.name(hint or self.scope), tuple(map(int, shape)), np.dtype(dtype), steps=steps
        )

    def put(
        self,
        builtin: str,
        inputs: Sequence[FlatTensor | None],
        shape: FlatShape,
        dtype: Any = None,
        **options: Any,
    ) -> FlatTensor:
        """One builtin with one result, of the type of its first operand unless one is given."""
        first = inputs[0]
        kind = first.dtype if dtype is None and first is not None else dtype
        steps = first.steps if first is not None and kind == first.dtype else None
        result = self.tensor(shape, kind, f"{self.scope}/{builtin.lower()}", steps)
        self.put_all(builtin, inputs, [result], **options)
        return result

    def put_all(
        self,
        builtin: str,
        inputs: Sequence[FlatTensor | None],
        outputs: Sequence[FlatTensor],
        **options: Any,
    ) -> None:
        """One builtin with results that are at hand."""
        most = MOST_AXES.get(builtin, MOST_AXES_OF_ANY)
        ranks = [tensor.rank for tensor in (*inputs, *outputs) if tensor is not None]
        if max(ranks, default=0) > most:
            raise RelayoutError(
                f"LiteRT's {builtin} has at most {most} axes, here are {max(ranks)}"
            )
        self.graph.operators.append(FlatOperator(builtin, tuple(inputs), tuple(outputs), options))

    def reshape(self, tensor: FlatTensor, shape: Sequence[int]) -> FlatTensor:
        lengths = tuple(map(int, shape))
        if lengths == tensor.shape:
            return tensor
        if tensor.data is not None:
            same = self.constant(tensor.data.reshape(lengths), hint=tensor.name)
            steps = tensor.steps if _keeps_axis(tensor, lengths) else None
            return self._with_steps(same, steps, range(len(lengths)))
        # A view of a view is one of what the first reads, which may have fewer axes.
        source = self._viewed.get(tensor, tensor)
        if source.shape == lengths:
            return source
        target = self.constant(lengths, INT32)
        result = self.put("RESHAPE", [source, target], lengths, newShape=list(lengths))
        self._viewed[result] = source
        return result

    def transpose(self, tensor: FlatTensor, perm: Sequence[int]) -> FlatTensor:
        shape = tuple(tensor.shape[axis] for axis in perm)
        if tensor.data is not None:
            moved = self.constant(np.transpose(tensor.data, perm), hint=tensor.name)
            return self._with_steps(moved, tensor.steps, perm)
        lengths, order = moved_groups(tensor.shape, perm)
        if order == tuple(range(len(order))):
            return self.reshape(tensor, shape)
        if tensor.rank > MOST_AXES["TRANSPOSE"]:
            return self.reshape(self._moved_in_steps(self.reshape(tensor, lengths), order), shape)
        return self._moved(tensor, perm)

    def _with_steps(
        self, constant: FlatTensor, steps: Quantisation | None, perm: Sequence[int]
    ) -> FlatTensor:
        """A constant whose numbers lie on the steps that they lay on before."""
        if steps is None:
            return constant
        result = self.unshared(constant)
        axis = list(perm).index(steps.axis) if len(steps.scales) > 1 else 0
        result.steps = replace(steps, axis=axis)
        return result

    def _moved_in_steps(self, tensor: FlatTensor, perm: Sequence[int]) -> FlatTensor:
        """One Transpose, or two where it moves more axes than the builtin has."""
        most = MOST_AXES["TRANSPOSE"]
        if len(perm) <= most:
            return self._moved(tensor, perm)
        steps = two_moves(tensor.shape, tuple(perm), most)
        if steps is None:
            raise RelayoutError(f"LiteRT's TRANSPOSE has at most {most} axes, here are {len(perm)}")
        return self.transpose(self.transpose(tensor, steps[0]), steps[1])

    def _moved(self, tensor: FlatTensor, perm: Sequence[int]) -> FlatTensor:
        shape = tuple(tensor.shape[axis] for axis in perm)
        return self.put("TRANSPOSE", [tensor, self.constant(perm, INT32)], shape)

    def cast(self, tensor: FlatTensor, dtype: Any) -> FlatTensor:
        kind = np.dtype(dtype)
        if kind == tensor.dtype:
            return tensor
        if tensor.data is not None:
            return self.constant(tensor.data.astype(kind), hint=tensor.name)
        return self.put("CAST", [tensor], tensor.shape, kind)

    def unary(self, builtin: str, tensor: FlatTensor, **options: Any) -> FlatTensor:
        flat = tensor
        if tensor.rank > MOST_AXES.get(builtin, MOST_AXES_OF_ANY):
            flat = self.reshape(tensor, (math.prod(tensor.shape),))
        return self.reshape(self.put(builtin, [flat], flat.shape, **options), tensor.shape)

    def broadcasting(
        self, builtin: str, operands: Sequence[FlatTensor], dtype: Any = None, **options: Any
    ) -> FlatTensor:
        """An elementwise builtin; where it has kernels for fewer axes, these are merged."""
        shape = tuple(np.broadcast_shapes(*(operand.shape for operand in operands)))
        rank, most = len(shape), MOST_AXES.get(builtin, MOST_AXES_OF_ANY)
        kind = dtype or operands[-1].dtype
        if rank <= most:
            return self.put(builtin, operands, shape, kind, **options)
        padded = [(1,) * (rank - operand.rank) + operand.shape for operand in operands]
        groups = broadcast_groups(padded)
        few = [
            self.reshape(operand, merged(long, groups))
            for operand, long in zip(operands, padded, strict=True)
        ]
        result = self.put(builtin, few, merged(shape, groups), kind, **options)
        return self.reshape(result, shape)

    def scalar(self, value: float, like: FlatTensor) -> FlatTensor:
        return self.constant(value, like.dtype)

    def with_scalar(self, builtin: str, tensor: FlatTensor, value: float) -> FlatTensor:
        """An elementwise builtin of a tensor and one number."""
        return self.broadcasting(builtin, [tensor, self.scalar(value, tensor)], tensor.dtype)

    def reduce(
        self, builtin: str, tensor: FlatTensor, axes: Sequence[int], *, keep: bool = True
    ) -> FlatTensor:
        """A reduction along some axes, which keep a length of 1 if asked."""
        kept = tuple(1 if axis in axes else n for axis, n in enumerate(tensor.shape))
        shape = kept if keep else tuple(n for i, n in enumerate(tensor.shape) if i not in axes)
        if not axes:
            return tensor
        operand, places = tensor, list(axes)
        if tensor.rank > MOST_AXES.get(builtin, MOST_AXES_OF_ANY):
            kinds = [None if n == 1 else axis in axes for axis, n in enumerate(tensor.shape)]
            groups = grouped_axes(kinds)
            operand = self.reshape(tensor, merged(tensor.shape, groups))
            places = [i for i, group in enumerate(groups) if any(kinds[axis] for axis in group)]
            whole = [1 if i in places else n for i, n in enumerate(operand.shape)]
            result = self._reduced(builtin, operand, places, tuple(whole), keep=True)
            return self.reshape(result, shape)
        return self._reduced(builtin, operand, places, shape, keep=keep)

    def _reduced(
        self, builtin: str, tensor: FlatTensor, axes: Sequence[int], shape: FlatShape, *, keep: bool
    ) -> FlatTensor:
        places = self.constant(sorted(axes), INT32)
        return self.put(builtin, [tensor, places], shape, keepDims=keep)

    def pad(
        self, tensor: FlatTensor, pads: Sequence[tuple[int, int]], value: float = 0.0
    ) -> FlatTensor:
        if not any(map(any, pads)):
            return tensor
        shape = tuple(n + sum(pair) for n, pair in zip(tensor.shape, pads, strict=True))
        places = self.constant(np.asarray(pads, np.int32).reshape(-1, 2))
        if value == 0.0:
            return self.put("PAD", [tensor, places], shape)
        return self.put("PADV2", [tensor, places, self.scalar(value, tensor)], shape)

    def slice(
        self, tensor: FlatTensor, starts: Sequence[int], lengths: Sequence[int]
    ) -> FlatTensor:
        """A box out of a tensor."""
        if tuple(lengths) == tensor.shape:
            return tensor
        if tensor.rank > MOST_AXES["SLICE"]:
            return self._slice_of_few(tensor, starts, lengths)
        operands = [tensor, self.constant(starts, INT32), self.constant(lengths, INT32)]
        return self.put("SLICE", operands, tuple(lengths))

    def _slice_of_few(
        self, tensor: FlatTensor, starts: Sequence[int], lengths: Sequence[int]
    ) -> FlatTensor:
        """A slice along the axes that it cuts, the others merged."""
        kinds = [axis if lengths[axis] != n else None for axis, n in enumerate(tensor.shape)]
        groups = _around(kinds)
        few = self.reshape(tensor, merged(tensor.shape, groups))
        if few.rank > MOST_AXES["SLICE"]:
            raise RelayoutError(f"LiteRT's SLICE has at most {MOST_AXES['SLICE']} axes")
        begins = [sum(starts[axis] for axis in group) for group in groups]
        cut = self.slice(few, begins, merged(tuple(lengths), groups))
        return self.reshape(cut, lengths)

    def strided(
        self,
        tensor: FlatTensor,
        starts: Sequence[int],
        lengths: Sequence[int],
        steps: Sequence[int],
    ) -> FlatTensor:
        """Entries with gaps between them, or backwards; each axis has a length that was counted."""
        if all(step == 1 for step in steps):
            return self.slice(tensor, starts, lengths)
        ends = [s + n * step for s, n, step in zip(starts, lengths, steps, strict=True)]
        # An end before the first entry cannot be written as a number: it would count from the end.
        mask = sum(1 << axis for axis, end in enumerate(ends) if end < 0)
        places = [self.constant(each, INT32) for each in (starts, ends, steps)]
        return self.put("STRIDED_SLICE", [tensor, *places], tuple(lengths), endMask=mask)

    def concat(self, parts: Sequence[FlatTensor], axis: int) -> FlatTensor:
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        if len(shape) > MOST_AXES_OF_ANY:
            few = [self.reshape(part, around_axis(part.shape, axis)) for part in parts]
            return self.reshape(self.concat(few, 1), shape)
        return self.put("CONCATENATION", parts, tuple(shape), axis=axis)

    def gather(self, tensor: FlatTensor, indices: FlatTensor, axis: int) -> FlatTensor:
        shape = (*tensor.shape[:axis], *indices.shape, *tensor.shape[axis + 1 :])
        return self.put("GATHER", [tensor, indices], shape, axis=axis)

    def places(self, tensor: FlatTensor, indices: FlatData, axis: int) -> FlatTensor:
        """Entries of an axis, by numbers that are known."""
        if np.array_equal(indices, np.arange(tensor.shape[axis])):
            return tensor
        return self.gather(tensor, self.constant(indices, INT32), axis)

    def expand(self, tensor: FlatTensor, shape: FlatShape) -> FlatTensor:
        """A tensor repeated along axes of length 1."""
        whole = tuple(np.broadcast_shapes(tensor.shape, shape))
        if whole == tensor.shape:
            return tensor
        if tensor.data is not None and math.prod(whole) <= 1 << 16:
            return self.constant(np.broadcast_to(tensor.data, whole), hint=tensor.name)
        return self.put("BROADCAST_TO", [tensor, self.constant(whole, INT32)], whole)

    def product(
        self, left: FlatTensor, right: FlatTensor, *, adj_x: bool = False, adj_y: bool = False
    ) -> FlatTensor:
        """A product of matrices, batches broadcast; the last two axes of each may be swapped."""
        rows = left.shape[-1] if adj_x else left.shape[-2]
        columns = right.shape[-2] if adj_y else right.shape[-1]
        batch = tuple(np.broadcast_shapes(left.shape[:-2], right.shape[:-2]))
        shape = (*batch, rows, columns)
        most = MOST_AXES["BATCH_MATMUL"]
        operands = [left, right]
        if len(shape) > most:
            rank = len(batch)
            padded = [(1,) * (rank + 2 - t.rank) + t.shape for t in operands]
            groups = broadcast_groups([lengths[:-2] for lengths in padded])
            operands = [
                self.reshape(t, (*merged(lengths[:-2], groups), *lengths[-2:]))
                for t, lengths in zip(operands, padded, strict=True)
            ]
            batch = merged(batch, groups)
        result = self.put("BATCH_MATMUL", operands, (*batch, rows, columns), adjX=adj_x, adjY=adj_y)
        return self.reshape(result, shape)

    def linear(
        self, tensor: FlatTensor, weights: FlatTensor, bias: FlatTensor | None = None
    ) -> FlatTensor:
        """A product with a matrix of outputs by inputs, and a bias."""
        shape = (*tensor.shape[:-1], weights.shape[0])
        keeps = len(shape) != 2
        return self.put("FULLY_CONNECTED", [tensor, weights, bias], shape, keepNumDims=keeps)


def _keeps_axis(tensor: FlatTensor, shape: FlatShape) -> bool:
    """Whether a constant still has the axis that its steps differ along, at the same place."""
    if tensor.steps is None or len(tensor.steps.scales) == 1:
        return True
    axis = tensor.steps.axis
    return tensor.shape[: axis + 1] == shape[: axis + 1]


def _around(kinds: Sequence[int | None]) -> list[list[int]]:
    """Axes that are cut by themselves, and runs of the others between them."""
    groups: list[list[int]] = []
    for axis, kind in enumerate(kinds):
        if kind is None and groups and kinds[axis - 1] is None:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups
