"""The measured choice, with a stand-in for the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest

import relayout
from relayout.assign.terms import Terms
from relayout.cli import main
from relayout.cli.codes import BAD_INPUT
from relayout.errors import RelayoutError
from relayout.ops.measure import Objective
from relayout.optimizer.measuring import AS_GIVEN, Measuring, candidates, words_of
from relayout.report.measured import measured_text
from relayout.targets.target import NHWC, ORT
from relayout.timing.contest import GIVEN, Contest, Entrant
from relayout.timing.ratio import PairedRatio
from relayout.verify.verdict import NumericVerdict
from tests.rewrite.rewriting import parse

PAIR = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3,4] x) => (float[2,3,4] y) {
    a = Transpose<perm=[0,2,1]>(x)
    b = Relu(a)
    y = Transpose<perm=[0,2,1]>(b)
}"""
KEPT_PAIR = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3,4] x) => (float[2,3,4] y) { y = Relu(x) }"""


class Runtime:
    """Has every candidate run at the same speed, and remembers what it was asked."""

    def __init__(self, median: float, low: float, high: float) -> None:
        self.ratio = PairedRatio(median, low, high, 12)
        self.nodes: dict[str, int] = {}
        self.asked: dict[str, Any] = {}

    def __call__(
        self, files: Mapping[str, Path], engine: str, _inputs: Any, **rest: Any
    ) -> Contest:
        self.asked = {"engine": engine, **rest}
        self.nodes = {name: len(onnx.load(file).graph.node) for name, file in files.items()}
        made = [Entrant(name, 1.0, self.ratio) for name in files if name != GIVEN]
        return Contest("a runtime", "1.0", rest["threads"], (Entrant(GIVEN, 1.0), *made))


def test_the_fastest_is_kept_and_reported() -> None:
    runtime = Runtime(1.5, 1.4, 1.6)
    result = relayout.optimize(parse(PAIR), measure=Measuring(holding=runtime))
    assert result.after.transposes == 0
    assert runtime.nodes == {GIVEN: 3, "fewest bytes": 1}
    assert runtime.asked == {"engine": "ort", "threads": 1, "seconds": 20.0}
    measured = result.record().measured
    assert measured is not None
    assert measured.kept == "fewest bytes"
    assert [model.name for model in measured.models] == [AS_GIVEN, "fewest bytes"]
    assert measured.models[1].times_as_fast == (1.5, 1.4, 1.6)
    assert "measured in a runtime 1.0: kept fewest bytes" in list(measured_text(measured))


def test_the_given_model_is_kept_where_none_is_faster(tmp_path: Path) -> None:
    given, output = parse(PAIR), tmp_path / "out.onnx"
    result = relayout.optimize(given, output, measure=Measuring(holding=Runtime(0.9, 0.8, 0.95)))
    assert not result.changed
    assert result.after == result.before
    assert not result.record().optimal
    assert onnx.load(output) == given
    measured = result.record().measured
    assert measured is not None
    assert measured.kept == AS_GIVEN


def test_the_next_is_taken_where_the_fastest_differs() -> None:
    different = NumericVerdict(status="differs", reason="it does")
    result = relayout.optimize(
        parse(PAIR),
        measure=Measuring(holding=Runtime(1.5, 1.4, 1.6)),
        comparing=lambda *_: different,
    )
    assert not result.changed
    assert any("is faster, but was not delivered" in note for note in result.record().notices)


def test_nothing_is_run_where_no_candidate_differs() -> None:
    runtime = Runtime(1.5, 1.4, 1.6)
    result = relayout.optimize(parse(KEPT_PAIR), measure=Measuring(holding=runtime))
    assert not runtime.asked
    assert result.record().measured is None


def test_candidates_are_all_objectives_with_and_without_raised_operators() -> None:
    words = [words_of(each) for each in candidates(Terms(Objective.COUNT, ORT))]
    assert words[:2] == ["fewest Transposes", "fewest Transposes, no attention raised"]
    assert len(words) == len(set(words)) == 2 * len(Objective)


def test_what_cannot_be_measured_is_refused_at_once() -> None:
    with pytest.raises(RelayoutError, match="no runtime here runs models for nhwc"):
        relayout.optimize(parse(PAIR), target=NHWC, measure=Measuring())
    with pytest.raises(RelayoutError, match="one interface"):
        relayout.optimize(parse(PAIR), free_inputs=True, measure=Measuring())
    with pytest.raises(RelayoutError, match="at least one thread"):
        Measuring(threads=0)


def test_a_model_is_measured_in_onnx_runtime() -> None:
    result = relayout.optimize(parse(PAIR), measure=Measuring(seconds=1.0))
    measured = result.record().measured
    assert measured is not None
    assert measured.runtime == "ONNX Runtime"
    assert measured.models[0].milliseconds > 0


def test_threads_go_with_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(parse(PAIR), tmp_path / "in.onnx")
    assert main(["optimize", str(tmp_path / "in.onnx"), "--threads", "2"]) == BAD_INPUT
    assert "--threads goes with --measure" in capsys.readouterr().err
