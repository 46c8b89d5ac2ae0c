"""The fastest way to run a model: ranked by turns, verified, kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import relayout
from relayout.backends.candidates import Candidates
from relayout.backends.fastest import compiling
from relayout.backends.fastest.compiling import compile_fastest, fastest_of
from relayout.backends.fastest.race import race
from relayout.backends.fastest.ranking import Ranking, RunWay, TimedWay
from relayout.backends.options import CompileOptions
from relayout.backends.ort.compiling import FILES
from relayout.backends.registry import ORT_BACKEND, Backend
from relayout.cli import main
from relayout.cli.demo_model import network
from relayout.errors import RelayoutError, VerificationError
from relayout.verify.verdict import NumericOptions
from tests.rewrite.rewriting import parse

SMALL = """
    g (float[N,4] x) => (float[N,2] y)
    <float[4,2] w = {1,2,3,4,5,6,7,8}> {
      y = MatMul(x, w) }"""

OPTIONS = CompileOptions(inputs=NumericOptions(), threads=1)


def sleeping(seconds: float) -> Callable[..., dict[str, Any]]:
    def call(*_arguments: Any, **_named: Any) -> dict[str, Any]:
        since = time.thread_time()
        while time.thread_time() - since < seconds:
            pass
        return {}

    return call


def test_the_fastest_comes_first_with_how_many_times_as_fast_it_is() -> None:
    ways = {name: RunWay("some", name) for name in ("slow", "line", "fast")}
    times = {"slow": 4e-3, "line": 2e-3, "fast": 1e-3}
    models = {ways[name]: sleeping(seconds) for name, seconds in times.items()}
    result = race(models, ways["line"], {}, threads=1, seconds=1.0)
    assert [each.way.name for each in result.ways] == ["fast", "line", "slow"]
    fast, line, slow = result.ways
    assert fast.ratio is not None
    assert slow.ratio is not None
    assert line.ratio is None
    assert 1.6 < fast.ratio[0] < 2.4
    assert 0.4 < slow.ratio[0] < 0.6
    assert fast.low <= fast.median <= fast.high


def test_a_ranking_is_the_same_after_it_was_kept() -> None:
    timed = TimedWay(
        RunWay("ort", "fewest bytes, as asked"), 1.0, 0.9, 1.2, (1.1, 1.0, 1.2), "", "ok"
    )
    ranking = Ranking((timed,), 2, {"x": (1, 2)}, "ort, as given", {"ort": "1"}, "this")
    assert Ranking.from_json(json.loads(json.dumps(ranking.to_json()))) == ranking


def test_what_was_measured_is_kept_and_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments: Any) -> Ranking:
        calls.append(1)
        ways = arguments[1]
        return Ranking(tuple(map(TimedWay, ways)), 1, {"x": (2, 4)})

    monkeypatch.setattr(compiling, "ranked", counted)
    model, other = parse(SMALL, 17), parse(SMALL.replace("8}", "9}"), 17)
    for given, expected in ((model, 1), (model, 1), (other, 2)):
        compile_fastest((ORT_BACKEND,), given, replace(OPTIONS, inputs=None))
        assert len(calls) == expected
    more = replace(OPTIONS, inputs=None, threads=2)
    compile_fastest((ORT_BACKEND,), model, more)
    assert len(calls) == 3


def backend_of(candidates: Candidates, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """ONNX Runtime with other ways."""
    monkeypatch.setattr("relayout.backends.ort.compiling.CANDIDATES", candidates)
    return ORT_BACKEND


def test_a_way_that_computes_something_else_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def build(given: Any, way: str, options: CompileOptions, folder: Path) -> Path:
        if way != "wrong":
            return FILES.build(given, "as given", options, folder)
        onnx.save(parse(SMALL.replace("8}", "9}"), 17), folder / "model.onnx")
        return folder / "model.onnx"

    ways = Candidates(("wrong", "right"), build, FILES.open)
    backend = backend_of(ways, monkeypatch)
    untuned = replace(OPTIONS, tune=False)
    with fastest_of((backend,), parse(SMALL, 17), untuned) as found:
        assert found.way == RunWay("ort", "right")
        (refused,) = (each for each in found.ranking.ways if each.refusal)
        assert refused.verdict == "differs"
    only = replace(ways, ways=("wrong",))
    with pytest.raises(VerificationError, match="differ"):
        compile_fastest((backend_of(only, monkeypatch),), parse(SMALL, 17), untuned)


def test_a_backend_that_is_not_there_is_named() -> None:
    nowhere = replace(ORT_BACKEND, name="nowhere", package="no_such_package")
    with pytest.raises(RelayoutError, match="none of the backends is installed: nowhere"):
        compile_fastest((nowhere,), parse(SMALL, 17), OPTIONS)


def test_ways_are_timed_verified_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(network(), path)
    asked = ["bench", str(path), "--backend", "ort", "--threads", "1", "--seconds", "0.3"]
    assert main([*asked, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    ways = {each["way"]: each for each in record["times"]}
    assert record["line"] == "ort, as given"
    assert record["threads"] == 1
    assert set(record["shapes"]) == {"image"}
    assert ways["ort, as given"]["median"] > 0
    assert record["chosen"] in ways
    assert ways[record["chosen"]]["verdict"].startswith("equal")
    assert set(record["versions"]) == {"relayout", "ort"}


def test_the_file_that_a_runtime_runs_fastest_is_written(tmp_path: Path) -> None:
    given, made = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(network(), given)
    asked = ["compile", str(given), "-o", str(made), "--target", "ort", "--plain"]
    assert main(asked) == 0
    kinds = [node.op_type for node in onnx.load(made).graph.node]
    assert kinds.count("Transpose") < 3


def test_backend_and_target_are_one_word() -> None:
    model = parse(SMALL, 17)
    x = np.ones((1, 4), np.float32)
    made = relayout.compile(model, target="ort", tune=False, verify=False)
    assert made(x)["y"].tolist() == [[16.0, 20.0]]
    with pytest.raises(RelayoutError, match="give one of them"):
        relayout.compile(model, target="ort", backend="ort")
    with pytest.raises(RelayoutError, match="on a CPU"):
        relayout.compile(model, backend="ort", dtype="float16", verify=False)
