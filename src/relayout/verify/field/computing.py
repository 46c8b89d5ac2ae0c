"""How a call is computed: moved, truly, over the field, by its definition, or as a hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.verify.field.definitions import defined
from relayout.verify.field.opaque import opaque
from relayout.verify.field.operators.registry import KERNELS, MOVEMENTS
from relayout.verify.field.true_numbers import computed_truly
from relayout.verify.field.values import FieldTensor, SteeredError, UnknownError, UnknownValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.field.call import Computed, FieldCall
    from relayout.verify.field.values import FieldValue

# What numpy raises where operands do not fit: the model cannot run on them.
MISFITS = (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError, OverflowError)


def computed(call: FieldCall) -> Sequence[FieldValue]:
    """The results of a call, or why they are unknown."""
    try:
        results = _computed(call)
    except UnknownError as error:
        misfit = isinstance(error, SteeredError)
        return [UnknownValue(f"{call.name}: {error}", misfit)] * call.results
    except MISFITS as error:
        return [UnknownValue(f"{call.name} does not run: {error}", misfit=True)] * call.results
    listed = results if isinstance(results, tuple) else (results,)
    for result in listed if (call.domain, call.op_type) not in MOVEMENTS else ():
        if isinstance(result, FieldTensor):
            call.context.computed(result.shape)
    return listed


def _computed(call: FieldCall) -> Computed:
    place = call.domain, call.op_type
    if place in MOVEMENTS:
        return MOVEMENTS[place](call)
    truly = computed_truly(call) if _is_true(call) else None
    if truly is not None:
        return truly
    if place in KERNELS:
        return KERNELS[place](call)
    by_definition = defined(call)
    return opaque(call) if by_definition is None else by_definition


def _is_true(call: FieldCall) -> bool:
    """Whether all operands are true numbers, and none that comes from the inputs meets floats."""
    tensors = call.tensors()
    if len(tensors) != sum(operand is not None for operand in call.operands):
        return False
    fed = any(tensor.fed for tensor in tensors)
    return all(tensor.is_true and not (fed and tensor.is_float) for tensor in tensors)
