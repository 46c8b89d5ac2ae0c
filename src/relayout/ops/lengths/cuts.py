"""How much a Slice leaves of the axes that it cuts at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, is_op
from relayout.layout.blocks import Size, size_of
from relayout.layout.transport import Refusal
from relayout.ops.lengths.entries import AXES, LONGEST, STEPS, Entries, Known, entries_of

EXACT_IN_FLOATS = 1 << 24
"""Below this every integer is a float."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of an axis a Slice leaves, if the axis is not shorter."""

    length: Size
    exact: bool
    """Whether it is this length; else the minimum of it and some positive number."""

    def leaves(self, length: int | str | None) -> bool:
        """Whether all of an axis is left."""
        return self.exact and length is not None and size_of(length) == self.length


def sliced(view: NodeView, known: Known) -> dict[int, Cut]:
    """The axes that a Slice cuts, where it cuts all of them from their start."""
    if view.arity < 3:
        # Before opset 10 the bounds are attributes, so that none is computed at run time.
        return {}
    axes, steps = AXES.read_ints(view), STEPS.read_ints(view)
    starts, ends = entries_of(view.node.inputs[1], known), _ends(view.node.inputs[2], known)
    shape = view.shape(0)
    if shape is None or starts is None or ends is None or not isinstance(axes, tuple):
        return {}
    if isinstance(steps, Refusal) or any(step != 1 for step in steps or ()):
        return {}
    if not len(axes) == len(starts) == len(ends.entries):
        return {}
    found = {
        axis % len(shape): Cut(end, ends.exact)
        for axis, start, end in zip(axes, starts, ends.entries, strict=True)
        if start == Size(0) and end is not None and end.number > 0
    }
    return found if len(found) == len(axes) else {}


class _Ends(NamedTuple):
    entries: Entries
    exact: bool


def _ends(value: ir.Value | None, known: Known) -> _Ends | None:
    """The ends of a Slice: lengths, or lengths that are kept below constants by a Min."""
    entries = entries_of(value, known)
    if entries is not None and None not in entries:
        return _Ends(entries, exact=True)
    node = _uncast(value)
    least = None if node is None else node.producer()
    if least is None or not is_op(least, "Min") or len(least.inputs) != 2:
        return None
    for one, other in (least.inputs, tuple(reversed(least.inputs))):
        limit, given = constant_of(other), entries_of(_uncast(one), known)
        if limit is not None and given is not None and _is_small(limit):
            return _Ends(given, exact=False)
    return None


def _uncast(value: ir.Value | None) -> ir.Value | None:
    node = None if value is None else value.producer()
    while node is not None and is_op(node, "Cast"):
        value = node.inputs[0]
        node = None if value is None else value.producer()
    return value


def _is_small(limit: ir.TensorProtocol) -> bool:
    """Whether the minimum of it and a length is the same in floats as in integers."""
    numbers = limit.numpy()
    return limit.size <= LONGEST and bool(np.all((numbers >= 1) & (numbers < EXACT_IN_FLOATS)))
