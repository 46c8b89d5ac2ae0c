"""Inputs of a run: residues for floats, true numbers for integers, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx

from relayout.verify.bindings import shape_under
from relayout.verify.field.hashing import key_of, spread
from relayout.verify.field.values import (
    FLOATS,
    FieldSequence,
    FieldTensor,
    UnknownValue,
    residue_tensor,
    true_tensor,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.bindings import Binding
    from relayout.verify.field.values import FieldValue
    from relayout.verify.inputs import Array
    from relayout.verify.interface import Interface, Port

WORDS = ("0", "1", "2", "10")
NARROW = 1


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """How inputs are drawn: wide integers from `low` to below `high`, defaults replaced or not."""

    low: int
    high: int
    replace_defaults: bool


# From the most thorough to the most modest: wide integers are mostly indexes, lengths and sizes,
# and a default may be a parameter that steers shapes.
PLANS = (
    FeedPlan(0, 8, replace_defaults=True),
    FeedPlan(0, 2, replace_defaults=True),
    FeedPlan(0, 8, replace_defaults=False),
    FeedPlan(0, 2, replace_defaults=False),
    FeedPlan(1, 2, replace_defaults=False),
)


def plans_for(interface: Interface) -> Sequence[FeedPlan]:
    """The plans that make a difference for a model."""
    wide = any(_is_wide(port) for port in (*interface.required, *interface.optional))
    defaults = any(port.element in FLOATS for port in interface.optional)
    plans = [
        plan for plan in PLANS if plan.replace_defaults == defaults or not plan.replace_defaults
    ]
    return plans if wide else [plan for plan in plans if plan.high == 8]


def drawn(
    interface: Interface, ports: Sequence[Port], binding: Binding, plan: FeedPlan, seed: int
) -> dict[str, FieldValue]:
    """Values for the required inputs, given as `ports`, and for defaults in floats if asked."""
    feeds = {port.name: _value(port, shape_under(port, binding), plan, seed) for port in ports}
    for port in interface.optional if plan.replace_defaults else ():
        if port.element in FLOATS and port.default is not None:
            feeds[port.name] = _value(port, port.default, plan, seed)
    return feeds


def _is_wide(port: Port) -> bool:
    if port.element in FLOATS or port.element == onnx.TensorProto.UNDEFINED:
        return False
    dtype = onnx.helper.tensor_dtype_to_np_dtype(port.element)
    return dtype.kind in "iu" and dtype.itemsize > NARROW


def _value(port: Port, shape: tuple[int, ...], plan: FeedPlan, seed: int) -> FieldValue:
    if port.kind not in ("tensor", "sequence", "optional"):
        return UnknownValue(f"input '{port.name}' is of kind {port.kind}")
    tensor = _tensor(port, shape, plan, key_of(seed, "input", port.name))
    return FieldSequence((tensor,)) if port.kind == "sequence" else tensor


def _tensor(port: Port, shape: tuple[int, ...], plan: FeedPlan, key: int) -> FieldTensor:
    if port.element in FLOATS:
        tensor = residue_tensor(spread(key, shape), port.element)
        return FieldTensor(tensor.data, port.element, is_true=False, fed=True)
    return true_tensor(_true(port, shape, plan, np.random.default_rng(key)), fed=True)


def _true(port: Port, shape: tuple[int, ...], plan: FeedPlan, rng: np.random.Generator) -> Array:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(port.element)
    if dtype.kind == "O":
        return rng.choice(np.array(WORDS, object), shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if _is_wide(port):
        return rng.integers(plan.low, plan.high, shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)
