"""How a bad model is refused."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from relayout.errors import BadModelError
from relayout.graph.io.load import load


def refusal(source: Path | onnx.ModelProto) -> str:
    """The one line with which a model is refused."""
    with pytest.raises(BadModelError) as caught:
        load(source)
    line = str(caught.value)
    assert "\n" not in line
    if isinstance(source, Path):
        assert source.name in line
    return line
