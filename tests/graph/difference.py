"""The leaf-by-leaf difference of two messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet


def difference(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Where two messages of one type differ, one line for each leaf or list."""
    if _unknown(old) != _unknown(new):
        yield f"{path}: unknown fields"
    names = dict.fromkeys(field.name for message in (old, new) for field, _ in message.ListFields())
    fields = old.DESCRIPTOR.fields_by_name
    for name in names:
        place = f"{path}.{name}" if path else name
        yield from _field_difference(fields[name], getattr(old, name), getattr(new, name), place)


def _field_difference(field: Any, old: Any, new: Any, place: str) -> Iterator[str]:
    if field.message_type is None:
        if old != new:
            yield f"{place}: {_shown(old)} -> {_shown(new)}"
    elif not field.is_repeated:
        yield from difference(old, new, place)
    elif len(old) != len(new):
        yield f"{place}: {_labels(old)} -> {_labels(new)}"
    else:
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from difference(before, after, f"{place}[{index}]")


def _labels(items: Any) -> str:
    return " ".join(
        getattr(item, "name", "") or getattr(item, "tensor_name", "?") for item in items
    )


def _shown(item: Any) -> Any:
    return item if isinstance(item, str | bytes | int | float) else list(item)


def _unknown(message: Any) -> list[tuple[int, bytes]]:
    return [(field.field_number, field.data) for field in UnknownFieldSet(message)]
