"""Samples for `relayout.ops.control`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.samples.sample import Sample

SAMPLES: list[Sample] = []
