"""OpenVINO, which runs the optimised file."""

from __future__ import annotations

from importlib.util import find_spec

from relayout.errors import RelayoutError

if find_spec("openvino") is None:
    raise RelayoutError("this needs OpenVINO: pip install 'relayout[openvino]'")
