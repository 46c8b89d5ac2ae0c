"""Rankings that were measured before, by model, machine, versions and settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from relayout.backends.fastest.isolated import numbers_of
from relayout.backends.fastest.opening import options_as_json
from relayout.backends.fastest.ranking import Ranking, RunWay
from relayout.backends.kept import cache_folder, read_json, write_json
from relayout.backends.machine import processor_name
from relayout.backends.options import CompileOptions
from relayout.backends.registry import BACKENDS
from relayout.graph.io.digest import digest_of
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.version import __version__

FOLDER = "fastest"


def versions_of(ways: Iterable[RunWay]) -> dict[str, str]:
    """The versions of all that takes part."""
    names = dict.fromkeys(way.backend for way in ways)
    return {"relayout": __version__, **{name: BACKENDS[name].version for name in names}}


def place_of(given: LoadedModel, ways: Iterable[RunWay], options: CompileOptions) -> Path:
    """The file for what is measured of a model here."""
    ways = tuple(ways)
    numbers = numbers_of(options).to_json()
    key = {
        "model": digest_of(given.given, given.files).to_json(),
        "machine": processor_name(),
        "versions": versions_of(ways),
        "ways": list(map(str, ways)),
        "options": options_as_json(options),
        "lengths": {name: numbers[name] for name in ("dims", "shapes")},
    }
    mark = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return cache_folder() / FOLDER / f"{mark[:32]}.json"


def read_ranking(place: Path) -> Ranking | None:
    """What was kept; a file of another form counts as none."""
    record = read_json(place)
    if not isinstance(record, Mapping):
        return None
    try:
        return Ranking.from_json(record)
    except (KeyError, TypeError, AttributeError):
        return None


def keep(place: Path, ranking: Ranking) -> None:
    """Keep a ranking; noise is not kept."""
    record: dict[str, Any] = ranking.to_json()
    if not ranking.is_noisy and not ranking.reason:
        write_json(place, record)
