"""Padding and cropping."""

from __future__ import annotations

from relayout.backends.torch.lower.axes import is_operand, normal, parameter
from relayout.backends.torch.lower.window import pad_text
from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import padding as runtime

MODES = {"reflect": "reflect", "edge": "replicate"}


def pad(call: Call) -> str:
    mode, pads = call.string("mode", "constant"), _pads(call)
    if pads is None:
        axes = call.list_text(3) if call.has(3) else "None"
        given = (call.tensor(0), call.list_text(1), axes, repr(mode), _value(call))
        return call.helper(runtime.pad, *given)
    if not any(pads):
        return call.tensor(0)
    if mode == "constant":
        return pad_text(call.tensor(0), _without_lead(pads), _value(call))
    rank, outer = len(pads) // 2, _outer(pads)
    is_common = rank in {3, 4, 5} and not any(outer) and min(pads) >= 0
    if mode in MODES and is_common and (mode != "reflect" or _has_room(call, pads)):
        inner = pads[2:rank] + pads[rank + 2 :]
        return f'{pad_text(call.tensor(0), inner)[:-1]}, mode="{MODES[mode]}")'
    return call.helper(runtime.pad, call.tensor(0), list(pads), "None", repr(mode), "0")


def _pads(call: Call) -> tuple[int, ...] | None:
    """The padding of all axes, if it is known."""
    pads = call.ints("paddings") or parameter(call, "pads", 1)
    if pads is None or not call.has(3):
        return pads
    axes, rank = call.known_ints(3), call.rank(0)
    if axes is None or rank is None:
        return None
    full = [0] * 2 * rank
    for index, axis in enumerate(axes):
        full[normal(axis, rank)] = pads[index]
        full[rank + normal(axis, rank)] = pads[len(axes) + index]
    return tuple(full)


def _outer(pads: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(pads) // 2
    return pads[:2] + pads[rank : rank + 2]


def _has_room(call: Call, pads: tuple[int, ...]) -> bool:
    """Whether each axis is known to be longer than what is reflected, which torch asks for."""
    rank, shape = len(pads) // 2, call.shape(0)
    return shape is not None and all(
        isinstance(length, int) and length > max(pads[axis], pads[rank + axis])
        for axis, length in enumerate(shape)
        if pads[axis] or pads[rank + axis]
    )


def _without_lead(pads: tuple[int, ...]) -> tuple[int, ...]:
    """Without the leading axes that get no padding: torch starts from the last axis."""
    rank = len(pads) // 2
    axes = [axis for axis in range(rank) if pads[axis] or pads[rank + axis]]
    return pads[axes[0] : rank] + pads[rank + axes[0] :]


def _value(call: Call) -> str:
    if is_operand(call, "value", 2):
        known = call.known(2)
        return "0" if known == (0,) else call.number_text(2)
    value = call.real("value", 0.0)
    return "0" if value == 0 else literal(value)


def center_crop_pad(call: Call) -> str:
    axes = call.ints("axes")
    return call.helper(
        runtime.center_crop_pad, call.tensor(0), call.list_text(1), axes and list(axes)
    )


LOWERINGS: dict[str, Lowering] = {"Pad": pad, "CenterCropPad": center_crop_pad}
