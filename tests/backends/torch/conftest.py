"""Whether a whole program is compiled may not depend on how busy the machine of the tests is."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from relayout.backends.torch.providers.prices import Price


@pytest.fixture(autouse=True)
def _steps_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs count as too fast for Inductor to compile them; tests of that give other times."""
    if find_spec("torch") is not None:
        frozen = import_module("relayout.backends.torch.choose.frozen")
        monkeypatch.setattr(frozen, "_timed", lambda programs: [Price(0.0) for _ in programs])
