"""What is written around, or in place of, a node that is restated in other orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.writer import NodeWriter
from relayout.graph.read import lengths_of
from relayout.graph.shapes.node import inferred_shape
from relayout.layout.blocks import Length, Reshaping, length_of, sizes_of
from relayout.layout.transport import AttributeValue, Changes, Step, Transport


@dataclass(frozen=True, slots=True)
class Restatement:
    """The operands, the results and the steps that a transport asks for."""

    writer: NodeWriter
    node: ir.Node
    transport: Transport

    @property
    def changes(self) -> Changes:
        return self.transport.changes

    def operands(self, given: Sequence[ir.Value | None]) -> list[ir.Value | None]:
        prepared = [self._prepared(index, value) for index, value in enumerate(given)]
        for index, array in self.changes.constants.items():
            prepared.extend([None] * (index + 1 - len(prepared)))
            hint = f"{self.node.name or self.node.op_type}_operand{index}"
            prepared[index] = self.writer.constant(array, hint=hint, before=self.node)
        for index, lengths in self.changes.lengths.items():
            if prepared[0] is not None:
                prepared[index] = self._put_together(prepared[0], lengths)
        places = self.changes.operand_order
        if places is None:
            return prepared
        return [None if index is None else prepared[index] for index in places]

    def results(self) -> list[ir.Value]:
        """The results of one node that is yet to be written."""
        return [self._result(index, value) for index, value in enumerate(self.node.outputs)]

    def results_read(self, results: Sequence[ir.Value]) -> list[ir.Value]:
        """The results of the new node, adapted for existing consumers."""
        return [self._result_read(index, value) for index, value in enumerate(results)]

    def _result_read(self, index: int, value: ir.Value) -> ir.Value:
        changes = self.changes
        if index not in changes.result_gathers and index not in changes.result_reshapes:
            return value
        value.shape = inferred_shape(value, self.writer.region.version)
        if index in changes.result_gathers:
            positions = changes.result_gathers[index]
            return self.writer.gathered(value, positions, before=self.node)
        _, shape = self._name_and_shape(index, self.node.outputs[index])
        return self._reshaped(value, changes.result_reshapes[index], shape)

    def result_of_steps(self, operands: Sequence[ir.Value | None]) -> ir.Value:
        """The only result of the node, from the steps that stand for it."""
        (given,) = self.node.outputs
        hint, shape = self._name_and_shape(0, given)
        known: dict[int | str, ir.Value | None] = dict(enumerate(operands))
        *earlier, last = self.changes.steps
        for step in earlier:
            known[step.result] = self._performed(step, known, f"{hint}_{step.result}")
        result = self._performed(last, known, hint, succeeds=self.node)
        result.shape = result.shape if shape is None else shape
        return result

    def _prepared(self, index: int, value: ir.Value | None) -> ir.Value | None:
        changes = self.changes
        if value is None:
            return None
        if index in changes.gathers:
            return self.writer.gathered(value, changes.gathers[index], before=self.node)
        if index in changes.unsqueezes:
            return self.writer.unsqueezed(value, changes.unsqueezes[index], before=self.node)
        if index in changes.reshapes:
            return self._reshaped(value, changes.reshapes[index])
        if index in changes.lookups:
            return self._looked_up(value, changes.lookups[index])
        return value

    def _result(self, index: int, given: ir.Value) -> ir.Value:
        if not given.name:
            return ir.Value(name="")
        hint, shape = self._name_and_shape(index, given)
        return ir.Value(
            name=self.writer.names.fresh(hint),
            type=given.type,
            shape=shape,
        )

    def _name_and_shape(self, index: int, given: ir.Value) -> tuple[str, ir.Shape | None]:
        order = self.transport.outputs[index]
        if order is None:
            return f"{given.name}_restated", given.shape
        name, shape = f"{given.name}_{order}", given.shape
        if shape is None or len(shape) != order.rank:
            # onnx infers too many axes for a Squeeze whose axes are not in order.
            return name, None
        return name, ir.Shape(order.reorder(tuple(shape)))

    def _reshaped(
        self, value: ir.Value, target: Sequence[int], shape: ir.Shape | None = None
    ) -> ir.Value:
        hint = f"{value.name}_reshaped"
        entries = np.asarray(target, np.int64)
        return self.writer.add(
            "Reshape",
            [value, self.writer.constant(entries, hint=f"{hint}_shape", before=self.node)],
            before=self.node,
            hint=hint,
            like=value,
            shape=shape or _shape_at(value.shape, target),
            origin=[self.node],
        )

    def _looked_up(self, value: ir.Value, table: Sequence[int]) -> ir.Value:
        """The entries of the table, in the type of `value`, at the places `value` names."""
        hint = f"{value.name}_looked_up"
        dtype = np.int64 if value.dtype is None else value.dtype.numpy()
        entries = self.writer.constant(
            np.asarray(table, dtype), hint=f"{hint}_in", before=self.node
        )
        return self.writer.add(
            "Gather",
            [entries, value],
            {"axis": 0},
            before=self.node,
            hint=hint,
            like=value,
            shape=value.shape,
        )

    def _put_together(self, source: ir.Value, lengths: Sequence[Length]) -> ir.Value:
        """A shape whose entries are numbers and lengths of `source`."""
        hint = f"{self.node.name or self.node.op_type}_lengths"
        whole = self._shape_step("Shape", [source], {}, f"{hint}_of", len(source.shape or ()))
        parts: list[ir.Value] = []
        for is_number, group in groupby(lengths, key=lambda length: not length.axes):
            if is_number:
                numbers = np.asarray([length.number for length in group], np.int64)
                parts.append(self.writer.constant(numbers, hint=hint, before=self.node))
                continue
            parts.extend(self._length(whole, length.axes, hint) for length in group)
        return self._shape_step("Concat", parts, {"axis": 0}, hint, len(lengths))

    def _length(self, whole: ir.Value, axes: Sequence[int], hint: str) -> ir.Value:
        picked = np.asarray(axes, np.int64)
        at = self.writer.constant(picked, hint=f"{hint}_at", before=self.node)
        read = self._shape_step("Gather", [whole, at], {"axis": 0}, hint, len(axes))
        return read if len(axes) == 1 else self._shape_step("ReduceProd", [read], {}, hint, 1)

    def _shape_step(
        self,
        op_type: str,
        operands: Sequence[ir.Value],
        attributes: Mapping[str, AttributeValue],
        hint: str,
        count: int,
    ) -> ir.Value:
        """A node that gives a vector of lengths."""
        result = self.writer.add(
            op_type, operands, attributes, before=self.node, hint=hint, origin=[self.node]
        )
        result.type, result.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([count])
        return result

    def _performed(
        self,
        step: Step,
        known: Mapping[int | str, ir.Value | None],
        hint: str,
        *,
        succeeds: ir.Node | None = None,
    ) -> ir.Value:
        operands = [
            known[item]
            if isinstance(item, int | str)
            else self.writer.constant(item, hint=f"{hint}_constant", before=self.node)
            for item in step.operands
        ]
        result = self.writer.add(
            step.op_type,
            operands,
            step.attributes,
            before=self.node,
            hint=hint,
            like=self.node.outputs[0],
            origin=[self.node],
            succeeds=succeeds,
        )
        self._annotate(result.producer())
        result.shape = inferred_shape(result, self.writer.region.version)
        return result

    def _annotate(self, step: ir.Node | None) -> None:
        """A step keeps the notes of the model about the node it replaces."""
        if step is not None:
            step.doc_string = self.node.doc_string
            step.metadata_props.update({**self.node.metadata_props, **step.metadata_props})


def _shape_at(shape: ir.Shape | None, target: Sequence[int]) -> ir.Shape | None:
    """The shape that a target gives to a value."""
    if shape is None:
        return None
    sizes = Reshaping.to_target(sizes_of(lengths_of(shape), "source"), target).result
    return ir.Shape([length_of(size) for size in sizes])
