"""--trace: spans that lie within one another as what they stand for does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from relayout.cli import main
from relayout.cli.demo_model import network
from relayout.report.trace import Span, seconds_by_name, trace


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(network().SerializeToString())
    return path


def tracks_of(data: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Complete events by the name of their track."""
    events = data["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    return {
        name: [event for event in events if event["ph"] == "X" and event["tid"] == track]
        for track, name in names.items()
    }


def test_a_run_of_optimize_is_traced(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    command = ["optimize", str(model), "-o", str(tmp_path / "out.onnx"), "--trace", str(file)]
    assert main(command) == 0
    tracks = tracks_of(json.loads(file.read_text()))
    steps, passes = tracks["steps"], tracks["passes"]
    assert steps[0]["name"] == "reading"
    assert steps[-1]["name"] == "comparing numbers"
    assert steps[0]["ts"] == 0
    tried = [step for step in steps if "optimising" in step["name"]]
    begin, end = tried[0]["ts"], tried[-1]["ts"] + tried[-1]["dur"]
    assert passes
    assert all(begin <= each["ts"] <= each["ts"] + each["dur"] <= end for each in passes)
    ends = [each["ts"] + each["dur"] for each in passes]
    assert all(each["ts"] >= before for each, before in zip(passes[1:], ends, strict=False))


def test_every_run_of_bench_is_traced(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path))
    file = tmp_path / "t.json"
    quick = ["--backend", "ort", "--threads", "1", "--seconds", "0.1"]
    assert main(["bench", str(model), "--dim", "N=1", *quick, "--trace", str(file)]) == 0
    tracks = tracks_of(json.loads(file.read_text()))
    assert set(tracks) == {"steps"}
    names = [step["name"] for step in tracks["steps"]]
    assert names[0] == "reading"
    assert any("timing" in name for name in names)


def test_a_trace_that_cannot_be_written_is_refused_at_once(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    trace_file = str(tmp_path / "missing" / "t.json")
    assert main(["optimize", str(model), "-o", str(out), "--trace", trace_file]) == 2
    assert not out.exists()


def test_spans_become_events_in_their_order() -> None:
    made = trace({"a": [Span("late", 3.5, 0.25), Span("early", 2.0, 1.0)], "b": []})
    assert [event["name"] for event in made["traceEvents"]] == [
        *("thread_name", "early", "late", "thread_name")
    ]
    assert made["traceEvents"][2] == {
        "ph": "X",
        "name": "late",
        "ts": 1_500_000.0,
        "dur": 250_000.0,
        "pid": 1,
        "tid": 1,
    }


def test_time_of_a_name_is_added_up() -> None:
    spans = [Span("a", 0, 1.0), Span("b", 1, 2.0), Span("a", 3, 0.5)]
    assert seconds_by_name(spans) == {"a": 1.5, "b": 2.0}
