"""Products of channels are taken before images are enlarged, where there are fewer pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, shape_of
from relayout.layout.transport import Array, AttributeValue
from relayout.rewrite.worklist import consumers
from relayout.targets.resized_products import (
    SIZES,
    TOLD_SIZES_SINCE,
    EnlargedPart,
    PixelProduct,
    concat_of,
    enlarged_parts,
    pixel_product,
)


@dataclass(frozen=True, slots=True)
class ProductBeforeResize:
    """A product of the channels of each pixel moves before the Resize of what it reads.

    Given:  r = Resize(x, scales); c = Concat<axis=1>(z, r); y = Conv(c, w, b), w of shape [M,C,1,1]
    Result: a = Conv(z, v, b), v the columns of w for z; p = Conv(x, u), u those for r
            y = Add(a, Resize(p, scales))

    A MatMul by a matrix, of images with their channels last, likewise. Both are sums with fixed
    weights along other axes, so their order changes rounding alone. A Resize gives pixels whose
    weights add up to 1, so a bias may be added before it. Each time a product comes before a
    Resize; only where that takes less work is it done.
    """

    name: str = "multiply before resizing"
    op_types: tuple[str, ...] = ("Conv", "MatMul")

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        parts = enlarged_parts(node, editor.region.version)
        product = pixel_product(node) if parts else None
        weight = constant_of(node.inputs[1]) if product is not None else None
        if product is None or weight is None:
            return None
        result = node.outputs[0]
        total = _Writing(node, product, editor).products(weight.numpy(), parts)
        editor.take_over(result, total)
        touched = [*consumers(result), *(use.node for use in total.uses())]
        editor.substitute(result, total, origin=node)
        editor.discard(node)
        return touched


@dataclass(frozen=True, slots=True)
class _Writing:
    """Writes what takes the place of a product, before it."""

    node: ir.Node
    product: PixelProduct
    editor: Editor

    def products(self, matrix: Array, parts: Sequence[EnlargedPart]) -> ir.Value:
        """The sum of the products of all parts; the one with the fewest pixels has the bias."""
        bias = self.node.inputs[2] if len(self.node.inputs) > 2 else None
        terms = [self._rest(matrix, parts, bias)]
        bias = bias if terms[0] is None else None
        for part in sorted(parts, key=lambda part: -part.saved):
            channels = range(part.start, part.start + part.channels)
            columns = matrix.take(channels, self.product.summed)
            terms.append(self._enlarged(part, columns, bias))
            bias = None
        total, *others = [term for term in terms if term is not None]
        for term in others:
            total = self._write("Add", [total, term], self.node.outputs[0].shape)
        return total

    def _rest(
        self, matrix: Array, parts: Sequence[EnlargedPart], bias: ir.Value | None
    ) -> ir.Value | None:
        """The product of all that was not enlarged, or None if there is nothing else."""
        concat = concat_of(self.node, self.product)
        taken = {part.index for part in parts}
        operands = [] if concat is None else concat.inputs
        others = [value for index, value in enumerate(operands) if index not in taken]
        if not others:
            return None
        kept = np.ones(matrix.shape[self.product.summed], np.bool_)
        for part in parts:
            kept[part.start : part.start + part.channels] = False
        operand = others[0]
        if len(others) > 1:
            source = self.node.inputs[0]
            shape = self._with_channels(source, int(kept.sum()))
            operand = self._write("Concat", others, shape, {"axis": self.product.channels})
        columns = matrix.compress(kept, self.product.summed)
        return self._product(operand, columns, bias, self.node.outputs[0].shape)

    def _enlarged(self, part: EnlargedPart, columns: Array, bias: ir.Value | None) -> ir.Value:
        """The product of a part, taken before it is enlarged, and then enlarged in the same way."""
        resize, outputs = part.resize, self.product.outputs
        source = resize.inputs[0]
        small = self._product(source, columns, bias, self._with_channels(source, outputs))
        operands = [small, *resize.inputs[1:]]
        if self.editor.region.version >= TOLD_SIZES_SINCE and len(operands) > SIZES:
            operands[SIZES] = self._sizes(resize, outputs)
        shape = self.node.outputs[0].shape
        return self._write(resize.op_type, operands, shape, _attributes(resize), like=resize)

    def _sizes(self, resize: ir.Node, channels: int) -> ir.Value | None:
        """The lengths that a Resize gives, with another number of channels."""
        sizes = resize.inputs[SIZES]
        axes = resize.attributes.get_ints("axes", None)
        rank = len(shape_of(resize.inputs[0]) or ())
        places = [axis % rank for axis in (range(rank) if axes is None else axes)]
        if sizes is None or self.product.channels not in places:
            return sizes
        is_channels = np.array([place == self.product.channels for place in places])
        tensor, hint = constant_of(sizes), f"{sizes.name}_of_products"
        if tensor is not None:
            told = np.where(is_channels, channels, tensor.numpy())
            return self.editor.constant(told, hint=hint, before=self.node)
        given = [
            self.editor.constant(array, hint=f"{hint}_channels", before=self.node)
            for array in (is_channels, np.array(channels, np.int64))
        ]
        return self.editor.add(
            "Where",
            [*given, sizes],
            before=self.node,
            hint=hint,
            like=sizes,
            shape=sizes.shape,
            origin=[resize],
        )

    def _product(
        self,
        operand: ir.Value | None,
        columns: Array,
        bias: ir.Value | None,
        shape: ir.Shape | None,
    ) -> ir.Value:
        weight = self.node.inputs[1]
        hint = f"{self.node.name if weight is None else weight.name}_part"
        part = self.editor.constant(np.ascontiguousarray(columns), hint=hint, before=self.node)
        operands = [operand, part, *([] if bias is None else [bias])]
        return self._write(self.node.op_type, operands, shape, _attributes(self.node))

    def _write(
        self,
        op_type: str,
        operands: Sequence[ir.Value | None],
        shape: ir.Shape | None,
        attributes: Mapping[str, AttributeValue] | None = None,
        *,
        like: ir.Node | None = None,
    ) -> ir.Value:
        """A new node; the last product has the name of the given one."""
        node, result = self.node, self.node.outputs[0]
        return self.editor.add(
            op_type,
            operands,
            attributes,
            before=node,
            hint=f"{result.name}_{op_type.lower()}",
            like=result,
            shape=shape,
            origin=[node, *([] if like is None else [like])],
            succeeds=node if op_type == node.op_type else None,
        )

    def _with_channels(self, value: ir.Value | None, channels: int) -> ir.Shape | None:
        """The shape of a value, with another number of channels."""
        if value is None or value.shape is None:
            return None
        lengths = list(value.shape)
        lengths[self.product.channels] = channels
        return ir.Shape(lengths)


def _attributes(node: ir.Node) -> Mapping[str, AttributeValue]:
    return {each.name: each.value for each in node.attributes.values()}
