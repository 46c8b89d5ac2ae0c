"""Files of one model in ONNX Runtime: a slow one, one that does less, one that does not run."""

from pathlib import Path

import onnx
import pytest

from relayout.errors import RelayoutError
from relayout.timing.contest import GIVEN, Contest, Entrant, contest
from relayout.timing.engines import ENGINES, ONNX_RUNTIME_ENGINE
from relayout.timing.isolated import contest_isolated
from relayout.timing.ratio import PairedRatio
from relayout.verify.verdict import NumericOptions

PRODUCTS = 8


def written(folder: Path, name: str, body: str) -> Path:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[N,128,128] x) => (float[N,128,128] y) {{ {body} }}"""
    )
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def products(count: int) -> str:
    steps = [f"t{i + 1} = MatMul(t{i}, t{i})" for i in range(count)]
    return " ".join(["t0 = Identity(x)", *steps, f"y = Neg(t{count})"])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {
        GIVEN: written(tmp_path, "given", products(PRODUCTS)),
        "fewer": written(tmp_path, "fewer", products(2)),
        "more": written(tmp_path, "more", products(2 * PRODUCTS)),
        "none": written(tmp_path, "none", "y = relayout.Unknown(x)"),
    }


OPTIONS = NumericOptions(dims={"N": 4})


def test_the_fastest_wins(files: dict[str, Path]) -> None:
    held = contest(files, ONNX_RUNTIME_ENGINE, OPTIONS, seconds=5.0)
    given, fewer, more, none = held.entrants
    assert held.winner == "fewer"
    assert given.seconds > fewer.seconds > 0
    assert fewer.ratio is not None
    assert fewer.ratio.median > 1.5
    assert more.ratio is not None
    assert more.ratio.is_slower
    assert none.refusal
    assert none.ratio is None


def test_the_given_file_is_kept_where_none_is_faster(files: dict[str, Path]) -> None:
    slower = {name: files[name] for name in (GIVEN, "more")}
    assert contest(slower, ONNX_RUNTIME_ENGINE, OPTIONS, seconds=5.0).winner == GIVEN


def test_a_slower_file_is_not_run_on_threads(files: dict[str, Path]) -> None:
    held = contest(files, ONNX_RUNTIME_ENGINE, OPTIONS, threads=2, seconds=2.0)
    by_name = {entrant.name: entrant for entrant in held.entrants}
    assert by_name["more"].clock_ratio is None
    assert by_name["fewer"].clock_ratio is not None
    assert by_name[GIVEN].clock_seconds > 0


def test_a_process_of_its_own_answers_alike(files: dict[str, Path]) -> None:
    held = contest_isolated(files, ONNX_RUNTIME_ENGINE.name, OPTIONS, seconds=5.0)
    assert held.winner == "fewer"
    assert held == Contest.from_json(held.to_json())


def test_a_given_file_that_does_not_run_is_refused(files: dict[str, Path]) -> None:
    with pytest.raises(RelayoutError, match="no inputs were found"):
        contest_isolated({GIVEN: files["none"]}, ONNX_RUNTIME_ENGINE.name, OPTIONS)


def test_faster_on_the_clock_must_be_clear() -> None:
    equal, little = PairedRatio(1, 0.99, 1.01, 50), PairedRatio(1.05, 1.01, 1.1, 50)
    clear, slower = PairedRatio(1.1, 1.03, 1.2, 50), PairedRatio(0.9, 0.8, 0.95, 50)
    assert not Entrant("a", 1.0, equal, 1.0, little).is_faster
    assert Entrant("a", 1.0, equal, 1.0, clear).is_faster
    assert not Entrant("a", 1.0, clear, 1.0, slower).is_faster


@pytest.mark.parametrize("name", list(ENGINES))
def test_engines_run_on_the_calling_thread(name: str, files: dict[str, Path]) -> None:
    engine = ENGINES[name]
    if not engine.is_installed:
        pytest.skip(f"{engine.summary} is not installed")
    assert contest({GIVEN: files[GIVEN]}, engine, OPTIONS, seconds=0.5).entrants[0].seconds > 1e-4
