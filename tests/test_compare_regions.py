"""`relayout compare --regions`: the worked examples of regions as users see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from relayout.cli import main
from tests.assign.test_document_two import IMAGE, IN_LINE, MIXING, TENSOR_BETWEEN, WEIGHT
from tests.rewrite.rewriting import parse

TWO = f"two ({IMAGE} x) => ({IMAGE} y) <{WEIGHT}> {{ a = Conv(x, w) y = Conv(a, w) }}"
COUNTER = f"""counter ({IMAGE} x, {IMAGE} z) => (float[1,40] y)
<{WEIGHT}, int64[2] flat = {{1, 40}}> {{
    a = Conv(x, w)
    b = Reshape(a, flat)
    c = Reshape(z, flat)
    y = Add(b, c)
}}"""
BETWEEN = TENSOR_BETWEEN.replace("BETWEEN", IN_LINE)
MIXED = TENSOR_BETWEEN.replace("BETWEEN", MIXING)


@pytest.fixture
def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(text: str, *options: str) -> str:
        path = tmp_path / "model.onnx"
        onnx.save(parse(text), path)
        arguments = ["compare", str(path), "--target", "nhwc", "--no-verify", "--regions"]
        assert main([*arguments, *options]) == 0
        return capsys.readouterr().out

    return ask


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TWO, {"A": (4, 2, 2), "B": (2, 0, 2), "C": (2, 0, 2), "P": (2, 0, 2)}),
        (BETWEEN, {"A": (4, 0, 4), "B": (4, 0, 4), "C": (2, 0, 2), "P": (2, 0, 2)}),
        (COUNTER, dict.fromkeys("ABCP", (2, 0, 2))),
        (MIXED, dict.fromkeys("ABCP", (4, 0, 4))),
    ],
    ids=["two nodes", "tensor between", "counter-example", "mixing axes"],
)
def test_inserted_removed_and_final_of_each_method(
    asked: Any, text: str, expected: dict[str, tuple[int, ...]]
) -> None:
    record = json.loads(asked(text, "--json"))
    found = {
        each["method"]: (each["inserted"], each["removed"], each["left"]["transposes"])
        for each in record["strategies"]
        if each["method"]
    }
    assert found == expected
    rows = [line.split() for line in asked(text).splitlines()]
    names = {each["method"]: each["name"] for each in record["strategies"]}
    for method, counts in expected.items():
        assert any(row[:5] == [names[method], method, *map(str, counts)] for row in rows)


def regions(asked: Any, text: str, name: str) -> list[dict[str, Any]]:
    record = json.loads(asked(text, "--json"))
    (found,) = (each["listed"] for each in record["strategies"] if each["name"] == name)
    return list(found)


def test_regions_with_members_layouts_borders_and_reasons(asked: Any) -> None:
    first, middle, last = regions(asked, BETWEEN, "preset")
    assert first == {
        "members": ["a"],
        "layout_class": "Feature",
        "given": "NCHW",
        "layout": "NHWC",
        "flipped": True,
        "why": "wanted by a",
        "borders": [
            {"tensor": "x", "enters": True, "stored": "NCHW", "wanted": "NHWC"},
            {"tensor": "a", "enters": False, "stored": "NHWC", "wanted": "NCHW"},
        ],
    }
    assert (middle["members"], middle["layout_class"], middle["flipped"]) == (
        *(["b", "c"], "Tensor", False),
    )
    assert [border["enters"] for border in middle["borders"]] == [True, False]
    assert (last["members"], last["given"], last["layout"]) == (["d", "y"], "NCHW", "NHWC")


def test_a_tensor_region_that_joined(asked: Any) -> None:
    (region,) = regions(asked, BETWEEN, "preset-plus")
    assert region["members"] == ["a", "b", "c", "d", "y"]
    assert region["layout_class"] == "Feature"
    assert (
        region["why"] == "wanted by a and 1 more; b and 1 more joined: all they read changed alike"
    )
    assert {border["tensor"] for border in region["borders"]} == {"x", "y"}


def test_a_tensor_region_that_did_not_join(asked: Any) -> None:
    _, kept, *_ = regions(asked, MIXED, "preset-plus")
    assert (kept["flipped"], kept["why"]) == (False, "b runs in the given order only")
    assert "kept: b runs in the given order only" in " ".join(asked(MIXED).split())


def test_strategies_that_do_not_go_by_regions_list_none(asked: Any) -> None:
    record = json.loads(asked(TWO, "--json"))
    listing = [each["name"] for each in record["strategies"] if each["listed"]]
    assert listing == ["preset", "preset-plus"]


def test_without_the_option_nothing_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse(TWO), path)
    assert main(["compare", str(path), "--no-verify", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {tuple(each["listed"]) for each in record["strategies"]} == {()}
