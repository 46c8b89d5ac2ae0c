"""--report: every command that has it writes a page that holds its graph."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from relayout.api import count, inspect, optimize
from relayout.cli import main
from relayout.cli.demo_model import network
from tests.report.html.test_page import embedded


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(network(), path)
    return path


def page_of(path: Path) -> dict[str, object]:
    data: dict[str, object] = embedded(path.read_text(encoding="utf-8"))
    return data


def test_optimize_shows_both_graphs_and_what_removed_each_transpose(
    model: Path, tmp_path: Path
) -> None:
    result = optimize(model, tmp_path / "out.onnx", report=tmp_path / "r.html")
    nodes = embedded((tmp_path / "r.html").read_text())["graph"]["nodes"]
    removed = [node["b"]["t"] for node in nodes if node["s"] == "removed" and "t" in node["b"]]
    left = [node["a"]["t"] for node in nodes if "t" in node.get("a", {})]
    assert len(removed) + len([n for n in nodes if "t" in n.get("b", {}) and "a" in n]) == (
        result.before.transposes
    )
    assert len(left) == result.after.transposes
    assert all(move["by"] for move in removed)
    assert all(move["why"] for move in left)
    convolutions = [node for node in nodes if node.get("b", node.get("a"))["op"] == "Conv"]
    assert convolutions
    assert all("a" in node and "b" in node for node in convolutions), "aligned by what they hold"


def test_nothing_is_written_where_the_report_cannot_be(model: Path, tmp_path: Path) -> None:
    command = ["optimize", str(model), "-o", str(tmp_path / "out.onnx")]
    assert main([*command, "--report", str(tmp_path / "missing" / "r.html")]) == 2
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("command", ["inspect", "compare", "fuse", "verify", "optimize"])
def test_commands_write_pages(command: str, model: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    more = [str(model)] if command == "verify" else []
    flags = ["--no-verify"] if command in ("compare", "fuse", "optimize") else []
    assert main([command, str(model), *more, *flags, "--report", str(report)]) == 0
    data = page_of(report)
    assert data["graph"]
    assert data["title"]
    assert data["cards"]


def test_strategies_that_are_equally_good_are_all_the_best(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert main(["compare", str(model), "--no-verify", "--report", str(page)]) == 0
    assert page_of(page)["headline"] == "least cost: exact and 6 more"


def test_the_same_run_gives_the_same_graph(model: Path, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        optimize(model, verify=False, report=tmp_path / name)
    assert page_of(tmp_path / "a.html")["graph"] == page_of(tmp_path / "b.html")["graph"]


def test_other_options_are_offered_where_they_were_tried(model: Path) -> None:
    offers = optimize(model, verify=False, suggest=True).record().offers
    assert [(each.option, each.transposes) for each in offers] == [("--free-inputs", 0)]
    assert optimize(model, verify=False).record().offers == ()


def test_an_offer_is_what_the_option_leaves(model: Path) -> None:
    offer = optimize(model, verify=False, suggest=True).record().offers[0]
    taken = optimize(model, verify=False, free_inputs=True)
    assert (offer.option, offer.transposes) == ("--free-inputs", taken.after.transposes)
    assert offer.bytes_moved == taken.after.bytes_moved == 0


def test_inspect_and_optimize_measure_with_the_same_ruler() -> None:
    shaped = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,4,6] x) => (float[A,B,C] y) {
            shape = Shape(x)
            flat = Reshape(x, shape)
            t = Transpose<perm=[0,2,1]>(flat)
            y = Softmax(t)
        }""")
    seen, done = inspect(shaped), optimize(shaped, verify=False)
    assert seen.figures.bytes_moved == done.before.bytes_moved
    assert count(shaped) == done.before


def test_a_page_has_the_predicted_time_where_time_is_made_least(
    model: Path, tmp_path: Path
) -> None:
    labels = {}
    for target in ("ort", "onnx"):
        optimize(model, target=target, verify=False, report=tmp_path / "r.html")
        cards = embedded((tmp_path / "r.html").read_text())["cards"]
        labels[target] = [card["label"] for card in cards]
    assert "predicted for moves" in labels["ort"]
    assert "predicted for moves" not in labels["onnx"]


@pytest.mark.parametrize("target", ["onnx", "openvino"])
def test_every_name_that_is_told_is_one_of_the_result(model: Path, target: str) -> None:
    result = optimize(model, target=target, verify=False)
    graph = result.model.graph
    known = {value.name for value in (*graph.input, *graph.output, *graph.node)}
    known |= {name for node in graph.node for name in node.output}
    left = result.record().left
    sides = [side for each in left for side in (each.why.stored_for, each.why.wanted_by)]
    assert left
    assert {each.name for each in left} <= known
    assert {demand.name for side in sides for demand in side.named} <= known
