"""Certificates in a few lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SHOWN = 12
"""How many digits of a hash people compare."""

LEAST = "least for the variants offered"
NOT_LEAST = "the best found; not proved least for the variants offered"


def certificate_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """What a certificate is about, and what it claims; nothing here is checked."""
    given, written = (_short(document.get(which)) for which in ("given", "written"))
    yield f"made by relayout {document.get('relayout', 'unknown')}"
    yield f"given {given} -> written {written} (sha256)"
    earlier = document.get("earlier")
    rounds = [*(earlier if isinstance(earlier, list) else []), document]
    equivalence = document.get("equivalence")
    if isinstance(equivalence, Mapping):
        yield f"given and written: {equivalence.get('finding')}"
    for number, one in enumerate(rounds, 1):
        yield from _round_lines(one, f"round {number}: " if len(rounds) > 1 else "")


def _round_lines(one: Any, label: str) -> Iterator[str]:
    if not isinstance(one, Mapping):
        return
    claim = LEAST if one.get("optimal") is True else NOT_LEAST
    yield f"{label}of {_short({'sha256': one.get('model')})}: {claim}; {_settings(one)}"


def _settings(one: Mapping[str, Any]) -> str:
    """The settings that differ from none, a flag by its name alone."""
    settings = one.get("settings")
    found = settings if isinstance(settings, Mapping) else {}
    said = {name: value for name, value in found.items() if value not in (False, None, [], {})}
    if said.pop("recomputes", None) is None:
        said["no operator restated"] = True
    return ", ".join(
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {_value(value)}"
        for name, value in said.items()
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:
        return str(value["name"])
    if isinstance(value, Mapping):
        return " ".join(f"{name}={length}" for name, length in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _short(digest: Any) -> str:
    found = digest.get("sha256") if isinstance(digest, Mapping) else None
    return str(found)[:SHOWN] if found else "unknown"
