"""The tests of this folder need the extra `litert`."""

from __future__ import annotations

from importlib.util import find_spec

IS_INSTALLED = find_spec("ai_edge_litert") is not None and find_spec("flatbuffers") is not None
collect_ignore_glob = [] if IS_INSTALLED else ["test_*.py"]
