"""Sequences are Python lists, and an empty optional is None."""

from __future__ import annotations

import onnx_ir as ir

from relayout.backends.torch.program.call import Call, Lowering, PythonExpression
from relayout.backends.torch.program.scalars import Host, Scalar
from relayout.backends.torch.runtime import sequence as runtime


def construct(call: Call) -> str:
    return f"[{', '.join(call.tensors)}]"


def empty(_call: Call) -> str:
    return "list()"


def insert(call: Call) -> str:
    sequence, item = call.tensor(0), call.tensor(1)
    if not call.has(2):
        return f"[*{sequence}, {item}]"
    place = call.number_text(2)
    return call.helper(runtime.inserted, sequence, item, place)


def erase(call: Call) -> str:
    place = call.number_text(1) if call.has(1) else "-1"
    return call.helper(runtime.erased, call.tensor(0), place)


def at(call: Call) -> str:
    return f"{call.tensor(0)}[{call.number_text(1)}]"


def length(call: Call) -> Host:
    return Host((Scalar(f"len({call.tensor(0)})"),), 0, ir.DataType.INT64)


def split(call: Call) -> str:
    axis, keeps = call.integer("axis", 0), bool(call.integer("keepdims", 1))
    lengths = call.list_text(1) if call.has(1) else "None"
    return call.helper(runtime.split_to_list, call.tensor(0), lengths, axis, keeps)


def concat(call: Call) -> str:
    name = "stack" if call.integer("new_axis", 0) else "cat"
    return f"torch.{name}({call.tensor(0)}, {call.integer('axis', 0)})"


def optional(call: Call) -> PythonExpression:
    """A new name, so that it is never taken for the operand itself."""
    return call.tensor(0) if call.has(0) else "(None)"


def get_element(call: Call) -> str:
    return call.tensor(0)


def has_element(call: Call) -> Host:
    text = f"{call.tensor(0)} is not None" if call.has(0) else "False"
    return Host((Scalar(text),), 0, ir.DataType.BOOL)


LOWERINGS: dict[str, Lowering] = {
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "SequenceAt": at,
    "SequenceLength": length,
    "SplitToSequence": split,
    "ConcatFromSequence": concat,
    "Optional": optional,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
}
