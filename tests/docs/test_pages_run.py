"""The Python of the tutorial and of the how-tos runs, as it stands on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.layers import ROOT
from relayout.cli.demo_model import network
from relayout.ops.registry import FACTS

TUTORIAL = ROOT / "docs" / "tutorial.md"
HOW_TOS = sorted((ROOT / "docs" / "howto").glob("*.md"))
NEEDS = {"phone": "ai_edge_litert"}
"""By page, the package that its code needs."""
NOT_RUN = {"gpu"}
"""Pages whose code needs a device that is not in every machine."""


def code_of(page: Path) -> str:
    """All of a page's Python as one module, with lines where the page has them."""
    lines, is_code = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        is_fence = line.startswith("```")
        lines.append(line if is_code and not is_fence else "")
        is_code = line == "```python" if is_fence else is_code
    return "\n".join(lines)


def run(page: Path) -> None:
    exec(compile(code_of(page), str(page), "exec"), {"__name__": "page"})


@pytest.fixture
def _demo_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "in.onnx").write_bytes(network().SerializeToString())
    monkeypatch.chdir(tmp_path)
    known = dict(FACTS)
    yield
    FACTS.clear()
    FACTS.update(known)


@pytest.mark.usefixtures("_demo_network")
def test_the_tutorial_runs() -> None:
    run(TUTORIAL)


def test_the_tutorial_keeps_to_its_title() -> None:
    assert "in 200 lines" in TUTORIAL.read_text(encoding="utf-8").partition("\n")[0]
    assert 100 < len([line for line in code_of(TUTORIAL).splitlines() if line.strip()]) <= 200


@pytest.mark.usefixtures("_demo_network")
@pytest.mark.parametrize("page", HOW_TOS, ids=lambda page: page.stem)
def test_the_python_of_a_how_to_runs(page: Path) -> None:
    if page.stem in NOT_RUN or not find_spec(NEEDS.get(page.stem, "relayout")):
        pytest.skip("needs what is not here")
    run(page)


def test_every_kind_of_user_has_a_page() -> None:
    asked = {"tensorflow", "npu", "phone", "ci", "operator", "target", "gpu"}
    assert asked == {page.stem for page in HOW_TOS}


def test_only_code_is_run() -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    fenced = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert [*filter(str.strip, code_of(TUTORIAL).splitlines())] == [
        *filter(str.strip, "".join(fenced).splitlines())
    ]
