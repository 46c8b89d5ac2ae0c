"""Operators, a target and a strategy for relayout, found through entry points."""

from __future__ import annotations

from relayout_example_plugin.strategy import HILL_CLIMB
from relayout_example_plugin.target import EXAMPLE_NPU

__all__ = ["EXAMPLE_NPU", "HILL_CLIMB"]
