"""What was done when, as the trace events that Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Span(NamedTuple):
    """Something that was done without a break."""

    name: str
    since: float
    """Seconds, on one clock for all spans."""
    seconds: float


def seconds_by_name(spans: Iterable[Span]) -> dict[str, float]:
    found: dict[str, float] = {}
    for span in spans:
        found[span.name] = found.get(span.name, 0.0) + span.seconds
    return found


def trace(tracks: Mapping[str, Iterable[Span]]) -> dict[str, Any]:
    """Spans on named tracks, one below the other; the first one of all begins at 0."""
    held = {name: sorted(spans, key=lambda span: span.since) for name, spans in tracks.items()}
    start = min((span.since for spans in held.values() for span in spans), default=0.0)
    events: list[dict[str, Any]] = []
    for number, (name, spans) in enumerate(held.items(), 1):
        place = {"pid": 1, "tid": number}
        events.append({"ph": "M", "name": "thread_name", **place, "args": {"name": name}})
        events.extend(
            {
                "ph": "X",
                "name": span.name,
                "ts": round(1e6 * (span.since - start), 3),
                "dur": round(1e6 * span.seconds, 3),
                **place,
            }
            for span in spans
        )
    return {"displayTimeUnit": "ms", "traceEvents": events}
