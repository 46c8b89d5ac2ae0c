"""Measurements and built kernels of these tests are kept apart from those of the user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("relayout_cache")
    before = os.environ.get("RELAYOUT_CACHE")
    os.environ["RELAYOUT_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["RELAYOUT_CACHE"]
    else:
        os.environ["RELAYOUT_CACHE"] = before
