"""What is decided about nodes before groups are chosen."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import onnx_ir as ir


@dataclass(frozen=True, slots=True)
class Settled:
    """Nodes that take no part in the choice, or not all of it."""

    ahead: Set[ir.Node] = frozenset()
    """Run before any kernel, so that they belong to none."""
    stops: Set[ir.Node] = frozenset()
    """Nothing that reads their results shares their kernel."""
    apart: Set[ir.Node] = frozenset()
    """Share their kernel with nothing."""
