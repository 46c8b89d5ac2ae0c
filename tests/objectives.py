"""What tests that need no prices try a model for."""

from __future__ import annotations

from relayout.ops.measure import Objective

COUNTED = (Objective.BYTES, Objective.COUNT)
"""What is read off a model alone, whatever runs it."""
