"""LiteRT: files for its interpreter, written without TensorFlow."""

from __future__ import annotations

from importlib.util import find_spec

from relayout.errors import missing

if any(find_spec(name) is None for name in ("ai_edge_litert", "flatbuffers")):
    raise missing("compiling for LiteRT needs its package", "litert")
