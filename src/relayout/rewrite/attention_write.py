"""Writes an attention as one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import rank_of, shape_of
from relayout.layout.blocks import UNIT, Size, Sizes
from relayout.layout.permutation import Permutation
from relayout.layout.transport import AttributeValue
from relayout.rewrite.attention_heads import HEADS_SECOND, Heads, Ports
from relayout.rewrite.attention_match import Core, Mask, least_of
from relayout.rewrite.links import dims_of
from relayout.rewrite.worklist import consumers
from relayout.targets.ort import CONTRIB_DOMAIN

EXCHANGED = Permutation.of(1, 0, 2)
"""From length, batch, width to batch, length, width."""

STANDARD_SINCE = 23
"""The opset version from which Attention is a standard operator."""


@dataclass(frozen=True, slots=True)
class AttentionWriter:
    """Writes an attention before the node whose result it takes over."""

    editor: Editor
    node: ir.Node

    @property
    def _is_standard(self) -> bool:
        return self.editor.region.version >= STANDARD_SINCE

    def raised(self, core: Core) -> ir.Value:
        operands = self.operands(core.ports, core.scale.values)
        mask = self.mask(core, operands)
        scale = {"scale": core.scale.number}
        if self._is_standard:
            given = operands if mask is None else [*operands, mask]
            return self.add("Attention", given, scale, core.ports)
        bias = [] if mask is None else [None, None, mask]
        return self.add("MultiHeadAttention", [*operands, *bias], scale, core.ports)

    def add(
        self,
        op_type: str,
        operands: Sequence[ir.Value | None],
        attributes: Mapping[str, AttributeValue],
        ports: Ports,
    ) -> ir.Value:
        """The operator with its numbers of heads."""
        query, key, value = ports.query, ports.key, ports.value
        standard = op_type == "Attention"
        heads = query.heads.number
        counts: dict[str, AttributeValue] = {"num_heads": heads}
        if standard:
            counts = {"q_num_heads": heads, "kv_num_heads": key.heads.number}
        result = self.node.outputs[0]
        return self.editor.add(
            op_type,
            operands,
            {**attributes, **counts},
            domain="" if standard else CONTRIB_DOMAIN,
            before=self.node,
            hint=f"{result.name}_joined",
            like=result,
            shape=_shape((query.batch, query.length, query.heads * value.depth)),
            origin=[self.node],
            succeeds=self.node if self.node.op_type == op_type else None,
        )

    def operands(self, ports: Ports, factors: Sequence[ir.Value] = ()) -> list[ir.Value]:
        """Q, K and V with three axes; what the run scales them by is put on Q."""
        wholes: dict[tuple[ir.Value, int, Permutation | None], list[ir.Value]] = {}
        found = []
        for one in ports:
            key = one.source, one.parts, one.moved
            if key not in wholes:
                wholes[key] = self._legs(one)
            found.append(wholes[key][one.part])
        for factor in factors:
            found[0] = self._like("Mul", [found[0], factor], found[0], found[0].shape)
        return found

    def _legs(self, heads: Heads) -> list[ir.Value]:
        *outer, width = heads.joined
        whole = heads.source
        if heads.moved is not None:
            whole = self._moved(whole, heads.moved)
        if heads.target is not None:
            whole = self.reshaped(whole, heads.target, (*outer, width * Size(heads.parts)))
        legs = [whole] if heads.parts == 1 else self._split(whole, heads)
        return [self._batch_first(leg) for leg in legs] if heads.is_length_first else legs

    def _batch_first(self, leg: ir.Value) -> ir.Value:
        return self._moved(leg, EXCHANGED)

    def _moved(self, value: ir.Value, perm: Permutation) -> ir.Value:
        return self.editor.transposed(value, perm, before=self.node, origin=[self.node])

    def _split(self, whole: ir.Value, heads: Heads) -> list[ir.Value]:
        hint, shape = f"{whole.name}_part", _shape(heads.joined)
        shapes = [shape] * heads.parts
        return self.editor.split(whole, 2, shapes, before=self.node, hint=hint)

    def reshaped(self, value: ir.Value, target: Sequence[int], sizes: Sizes) -> ir.Value:
        array = np.asarray(target, np.int64)
        hint = f"{value.name}_shape"
        shape = self.editor.constant(array, hint=hint, before=self.node)
        return self._like("Reshape", [value, shape], value, _shape(sizes))

    def _like(
        self,
        op_type: str,
        operands: Sequence[ir.Value],
        like: ir.Value,
        shape: ir.Shape | None,
        attributes: dict[str, AttributeValue] | None = None,
    ) -> ir.Value:
        return self.editor.add(
            op_type,
            operands,
            attributes,
            before=self.node,
            hint=f"{like.name}_{op_type.lower()}",
            like=like,
            shape=shape,
            origin=[self.node],
        )

    def put(self, joined: ir.Value, ports: Ports) -> list[ir.Node]:
        """Let a result with heads side by side stand for the one of the node.

        Its heads are moved forward once more; what moved them back is its inverse.
        """
        query, value, result = ports.query, ports.value, self.node.outputs[0]
        by_head = (query.batch, query.length, query.heads, value.depth)
        heads, depth = query.heads.number, value.depth.number
        apart = self.reshaped(joined, [0, 0, heads, depth], by_head)
        moved = self._moved(apart, HEADS_SECOND)
        if rank_of(result) == 3:
            sizes = query.batch * query.heads, query.length, value.depth
            moved = self.reshaped(moved, [-1, query.length.number, depth], sizes)
        touched = consumers(result)
        self.editor.substitute(result, moved, origin=self.node)
        self.editor.discard(self.node)
        return touched

    # masks

    def mask(self, core: Core, operands: Sequence[ir.Value]) -> ir.Value | None:
        """One mask for all, of the full length along the last two axes."""
        if not core.masks:
            return None
        masks = [self._added(mask) for mask in core.masks]
        total, sizes = masks[0], core.masks[0].sizes
        for other, mask in zip(masks[1:], core.masks[1:], strict=True):
            sizes = tuple(max(pair, key=_width) for pair in zip(sizes, mask.sizes, strict=True))
            total = self._like("Add", [total, other], total, _shape(sizes))
        wanted = core.ports.query.length, core.ports.key.length
        if sizes[2:] == wanted:
            return total
        target = self._rows(wanted, operands)
        return self._like("Expand", [total, target], total, _shape((*sizes[:2], *wanted)))

    def _added(self, mask: Mask) -> ir.Value:
        """A mask with four axes, to be added."""
        value, rank = mask.value, len(shape_of(mask.value) or ())
        if mask.chooses:
            like = self.node.outputs[0]
            dtype = (like.dtype or ir.DataType.FLOAT).numpy()
            kept, hidden = (
                self.editor.constant(np.asarray(number, dtype), hint="mask", before=self.node)
                for number in (0, -np.inf)
            )
            value = self._like("Where", [value, kept, hidden], like, mask.value.shape)
        if self._is_standard and least_of(mask) == _lowest(value):
            value = self._raised(value)
        if rank < 4:
            return self.editor.unsqueezed(value, range(4 - rank), before=self.node)
        if rank > 4:
            return self.editor.squeezed(value, range(rank - 4), before=self.node)
        return value

    def _raised(self, mask: ir.Value) -> ir.Value:
        """A mask that hides as well, but not by the least number there is.

        ONNX Runtime's Attention gives 0 for a row of those, where a softmax weighs all alike.
        """
        half = np.asarray(_lowest(mask) / 2, (mask.dtype or ir.DataType.FLOAT).numpy())
        least = self.editor.constant(half, hint="mask_least", before=self.node)
        return self._like("Max", [mask, least], mask, mask.shape)

    def _rows(self, lengths: tuple[Size, Size], operands: Sequence[ir.Value]) -> ir.Value:
        """The target shape that widens a mask to the lengths of Q and K."""
        if not any(length.symbols for length in lengths):
            array = np.asarray([1, 1, *(length.number for length in lengths)], np.int64)
            return self.editor.constant(array, hint="mask_shape", before=self.node)
        units = self.editor.constant(np.ones(2, np.int64), hint="mask_units", before=self.node)
        rows = [self._length(operand) for operand in operands[:2]]
        return self._like("Concat", [units, *rows], units, ir.Shape([4]), {"axis": 0})

    def _length(self, operand: ir.Value) -> ir.Value:
        """The length of a tensor [batch, length, width], as a tensor of one entry."""
        at = self.editor.constant(np.ones(1, np.int64), hint="length_at", before=self.node)
        shape = self._like("Shape", [operand], at, ir.Shape([3]))
        return self._like("Gather", [shape, at], at, ir.Shape([1]), {"axis": 0})


def _lowest(value: ir.Value) -> float:
    """The least finite number of the type of a value."""
    return float((value.dtype or ir.DataType.FLOAT).min)


def _width(size: Size) -> bool:
    return size != UNIT


def _shape(sizes: Sizes) -> ir.Shape:
    return ir.Shape(dims_of(sizes))
