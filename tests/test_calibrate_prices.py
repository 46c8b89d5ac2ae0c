"""Tables of prices measured on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from relayout.cli import main
from relayout.errors import RelayoutError
from relayout.optimizer import calibrating
from relayout.optimizer.calibrating import Stopwatch, measured_prices
from relayout.targets.prices.table import read_prices
from relayout.targets.target import NHWC


def test_a_table_is_measured_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path))
    monkeypatch.setattr(calibrating, "SIZES", ((1_200_000, 2), (5_000_000, 4), (10**12, 8)))
    monkeypatch.setattr(calibrating.Stopwatch, "__init__", _without_waiting)
    assert main(["calibrate", "--target", "ort"]) == 0
    (file,) = tmp_path.iterdir()
    assert str(file) in capsys.readouterr().out.replace("\n", "")
    assert read_prices(file).node > 0


def _without_waiting(self: Stopwatch, engine: object, _seconds: float) -> None:
    self.engine, self.seconds = engine, 0.0  # type: ignore[assignment]


def test_a_target_without_prices_is_refused() -> None:
    with pytest.raises(RelayoutError, match="no table of prices"):
        measured_prices(NHWC)
