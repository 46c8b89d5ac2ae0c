"""OpenVINO, which runs the optimised file."""

from __future__ import annotations

from importlib.util import find_spec

from relayout.errors import missing

if find_spec("openvino") is None:
    raise missing("this needs OpenVINO", "openvino")
