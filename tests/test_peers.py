"""What the comparison with other tools keeps, and what it writes."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from benchmarks.peers.plots import bars, curves
from benchmarks.peers.records import Kept, mean, ratio_of, worse_than
from benchmarks.peers.report import NAMES, write
from benchmarks.peers.tools import TOOLS, run
from benchmarks.zoo import Entry
from relayout.cli.demo_model import network


def entrant(median: float | None, refusal: str = "") -> dict[str, Any]:
    ratio = None if median is None else {"median": median, "low": 0.9, "high": 1.1, "pairs": 12}
    return {"seconds": 0.01, "ratio": ratio, "refusal": refusal}


def record(transposes: int, faster: float) -> dict[str, Any]:
    made = {"transposes": transposes, "bytes": 100 * transposes, "nodes": 10}
    spent = {"seconds": 1.0, "megabytes": 100.0, "reason": ""}
    times = {"given": entrant(None), **{name: entrant(faster) for name in NAMES}}
    return {
        "figures": dict.fromkeys(("given", *NAMES), made),
        "tools": dict.fromkeys(NAMES, spent),
        "shares": {name: [1.0, 10.0] for name in ("given", *NAMES)},
        "runtimes": {"ort": times, "openvino": {"refusal": "no"}},
    }


def test_ratios_are_those_of_results_that_run() -> None:
    one = record(2, 1.5)
    one["runtimes"]["ort"]["onnxsim"] = entrant(None, "it does not load")
    assert ratio_of(one, "ort", "relayout") == 1.5
    assert ratio_of(one, "ort", "given") == 1.0
    assert ratio_of(one, "ort", "onnxsim") is None
    assert ratio_of(one, "openvino", "relayout") is None
    assert math.isclose(mean([2.0, 0.5]), 1.0)


def test_what_got_worse_is_said_and_records_are_kept(tmp_path: Path) -> None:
    kept = Kept.of(tmp_path / "results.json")
    assert kept.put("a", record(2, 1.5)) == []
    again = Kept.of(tmp_path / "results.json")
    worse = again.put("a", record(3, 1.4))
    assert "relayout: 2 -> 3 Transposes" in worse
    assert "relayout, ort: 1.500 -> 1.400 times as fast as given" in worse
    assert list(worse_than(record(3, 1.4), record(2, 1.38))) == []
    assert json.loads((tmp_path / "results.json").read_text())["models"]["a"]["figures"]


def test_the_page_has_every_model_and_its_plots_are_svg(tmp_path: Path) -> None:
    kept = Kept.of(tmp_path / "results.json")
    kept.put("torch__a", record(2, 1.5))
    kept.put("tf__b", record(0, 0.9))
    write(kept, tmp_path / "RESULTS.md")
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| relayout | 2 | 2 | 0.00 | 2.0 of 20 ms (10.0 %) | 1.162 | 0.90 | 1 of 2 |" in page
    assert "OpenVINO does not run as given: tf__b, torch__a." in page
    for name in ("ort", "openvino", "transposes"):
        assert f"plots/{name}.svg" in page
        ET.parse(tmp_path / "plots" / f"{name}.svg")


def test_curves_are_sorted_and_bars_in_proportion() -> None:
    drawn = ET.fromstring(curves("a < b", {"one": [2.0, 0.5, 1.0]}))
    (line,) = drawn.iter("{http://www.w3.org/2000/svg}polyline")
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights == sorted(heights, reverse=True)
    shown = ET.fromstring(bars("left", {"given": 10.0, "relayout": 5.0}))
    widths = [float(each.attrib["width"]) for each in shown.iter() if "rect" in each.tag][1:]
    assert math.isclose(widths[0], 2 * widths[1])


def test_a_tool_is_run_in_a_process_of_its_own(tmp_path: Path) -> None:
    model, output = tmp_path / "in.onnx", tmp_path / "out.onnx"
    model.write_bytes(network().SerializeToString())
    tool = next(tool for tool in TOOLS if tool.name == "ONNX Runtime")
    spent = run(tool, Entry("demo", model, {}), output)
    assert output.exists()
    assert spent.seconds > 0
    assert spent.megabytes > 10
    assert not spent.reason
