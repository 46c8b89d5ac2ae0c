"""What the tensors of a model become when it is optimised for a target."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from relayout.report.layouts import LayoutsRecord

DERIVED = re.compile(r"(.+)_(?:\d+|\d~[0-9a-f]+|restated|reshaped)")
"""A tensor that is stored in another order is named after the one it was, and its order."""


def converted(given: LayoutsRecord, result: LayoutsRecord, target: str) -> LayoutsRecord:
    """The tensors as given, each with the layouts that it has in the result.

    One that kept its name kept its layout, even if nothing in the result fixes it any more.
    """
    owners = {tensor.name: tensor for tensor in given.tensors}
    layouts: dict[str, dict[str, None]] = {name: {} for name in owners}
    for tensor in result.tensors:
        owner = _owner(tensor.name, owners)
        if owner is None or _lengths(owners[owner].shape) != _lengths(tensor.shape):
            continue
        layouts[owner][owners[owner].layout if owner == tensor.name else tensor.layout] = None
    tensors = (replace(tensor, becomes=tuple(layouts[tensor.name])) for tensor in given.tensors)
    return replace(given, tensors=tuple(tensors), target=target)


def _owner(name: str, given: Collection[str]) -> str | None:
    """The tensor that one of the result was made of; the longest name counts."""
    while name not in given:
        match = DERIVED.fullmatch(name)
        if match is None:
            return None
        name = match[1]
    return name


def _lengths(shape: str) -> list[str]:
    return sorted(shape.strip("[]").split(","))
