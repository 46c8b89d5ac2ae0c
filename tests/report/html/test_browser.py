"""The page in a real browser, where one is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from relayout.report.html.page import Card, Page
from tests.report.html.chains import HOSTILE, before_and_after, chain

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

DRIVER = """
<script>
function tell(found) {
  const holder = document.createElement("pre");
  holder.id = "found";
  holder.textContent = JSON.stringify(found);
  document.body.append(holder);
}
function press(target, key) {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
}
function clickAt(item, pane = 0) {
  const view = window.report.view, at = view.graph.at[item], canvas = view.canvases[pane];
  const box = canvas.getBoundingClientRect();
  const clientX = box.left + (at.x + Math.min(at.w / 2, 40) - view.x) * view.scale;
  const clientY = box.top + (at.y + 10 - view.y) * view.scale;
  for (const name of ["pointerdown", "pointerup"]) {
    canvas.dispatchEvent(new PointerEvent(name, { clientX, clientY, bubbles: true }));
  }
}
addEventListener("error", event => tell({ error: event.message }));
addEventListener("unhandledrejection", event => tell({ error: String(event.reason) }));
const waiting = setInterval(() => {
  if (!window.report || !document.documentElement.dataset.ready) return;
  clearInterval(waiting);
  try { tell(tried(window.report)); } catch (error) { tell({ error: error.stack }); }
}, 20);
function tried(page) { %s }
</script>
"""


def found_in(page: Page, script: str, folder: Path, fragment: str = "") -> Any:
    """What a script finds out in the page, once it is drawn."""
    found = answered(
        page.html().replace("</body>", (DRIVER % script) + "</body>"), folder, fragment
    )
    assert "error" not in found, found["error"]
    return found


def answered(content: str, folder: Path, fragment: str = "") -> Any:
    """What a page writes of itself, for tests to find."""
    file = folder / "page.html"
    file.write_text(content, encoding="utf-8")
    command = [
        *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        "--disable-features=IsolateSandboxedIframes",
        *(f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000"),
        *("--virtual-time-budget=20000", "--dump-dom", f"file://{file}{fragment}"),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    opening = shown.stdout.index('<pre id="found">') + len('<pre id="found">')
    text = shown.stdout[opening : shown.stdout.index("</pre>", opening)]
    return json.loads(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


WALK = """
  const graph = page.graph, view = page.view, start = graph.items.length;
  const requests = performance.getEntriesByType("resource").length;
  const shown = document.getElementById("detail").textContent;
  const box = graph.items.find(item => graph.isBox(item) && !graph.isOpen(item));
  let folding = null;
  if (box !== undefined) {
    const count = graph.items.length;
    view.centre(box); clickAt(box);
    const opened = graph.items.length; clickAt(box);
    folding = [opened > count, graph.items.length === count];
  }
  const search = document.getElementById("search");
  search.value = "Relu"; search.dispatchEvent(new Event("input"));
  const found = document.getElementById("found").textContent;
  const hit = document.getElementById("detail").textContent;
  const removed = graph.moving.find(item => graph.data.nodes[item].s === "removed");
  view.show(removed); clickAt(removed);
  const why = document.getElementById("detail").textContent, link = location.hash;
  press(document.body, "n"); const next = view.selected;
  press(document.body, "p"); const back = view.selected;
  const light = getComputedStyle(document.body).backgroundColor;
  press(document.body, "t");
  const dark = getComputedStyle(document.body).backgroundColor;
  const canvas = view.canvases[0], before = view.selected;
  press(canvas, "ArrowDown"); const down = view.selected;
  return { start, requests, shown, folding, found, hit, why, link,
    moved: next !== removed && back === removed, themes: light !== dark, down: down !== before,
    cards: document.querySelectorAll(".card").length };
"""


@pytest.mark.parametrize("count", [20, 2000, 20_000])
def test_a_page_is_used(count: int, tmp_path: Path) -> None:
    before, after = before_and_after(count)
    page = Page("model", "", "done", cards=(Card("a", "1", "2"),), before=before, after=after)
    found = found_in(page, WALK, tmp_path)
    assert found["requests"] == 0
    assert "why it" in found["shown"], "the largest Transpose that is left is selected at first"
    assert found["start"] < 120
    assert found["folding"] in (None, [True, True])
    assert " of " in found["found"]
    assert "Relu" in found["hit"]
    assert "removed by" in found["why"]
    assert found["link"].startswith("#node=")
    assert found["moved"]
    assert found["themes"]
    assert found["down"]
    assert found["cards"] == 1


def test_hostile_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    graph = chain(["T", "Relu"], [HOSTILE, "b"])
    page = Page(HOSTILE, HOSTILE, HOSTILE, cards=(Card(HOSTILE, HOSTILE),), before=graph)
    script = """
      page.view.show(1);
      return { title: document.title, images: document.images.length,
        shown: document.getElementById("detail").textContent };
    """
    found = found_in(page, script, tmp_path)
    assert found["title"] == HOSTILE
    assert found["images"] == 0
    assert HOSTILE in found["shown"]


def test_transposes_left_are_told_once_for_what_causes_them(tmp_path: Path) -> None:
    graph = chain(["T", "Relu", "T"])
    page = Page("m", "", "", before=graph, offers=("--opset 23 would leave 0",))
    script = 'return { left: document.getElementById("left").innerText };'
    told = found_in(page, script, tmp_path)["left"]
    assert told.count("perm 0 2 3 1") == 1
    assert told.count("wanted by: Conv takes its channels from axis 1") == 1
    assert told.index("--opset 23") < told.index("perm 0 2 3 1")


def test_reasons_are_announced_where_there_are_some(tmp_path: Path) -> None:
    graph = chain(["T", "Relu"])
    moves = (node.transpose and replace(node.transpose, causes=()) for node in graph.nodes)
    plain = tuple(
        replace(node, transpose=move) for node, move in zip(graph.nodes, moves, strict=True)
    )
    script = 'return document.querySelector("#left h2").innerText;'
    told = found_in(Page("m", "", "", before=graph), script, tmp_path)
    assert told == "1 Transpose, and why"
    untold = found_in(Page("m", "", "", before=replace(graph, nodes=plain)), script, tmp_path)
    assert untold == "1 Transpose"


def test_a_page_is_used_in_a_frame_of_a_notebook(tmp_path: Path) -> None:
    before, after = before_and_after(20)
    page = Page("m", "", "", before=before, after=after)
    inner = """
      page.step(1);
      setTimeout(() => parent.postMessage(document.getElementById("detail").innerText, "*"), 100);
    """
    frame = page._repr_html_().replace("&lt;/body&gt;", escape(DRIVER % inner) + "&lt;/body&gt;")
    outer = (
        "<body>%s<script>addEventListener('message', event => {"
        "const found = document.createElement('pre'); found.id = 'found';"
        "found.textContent = JSON.stringify(event.data); document.body.append(found); })</script>"
    )
    told = answered(outer % frame, tmp_path)
    assert "perm" in told


LONG = (
    Card("verified", "the same model"),
    Card("verified", "equal with the decisions of the given model"),
    Card("predicted for moves", "999.99 ms", "999.99 ms"),
    Card("bytes moved", "999.9 MB", "999.9 MB"),
    Card("certificate", "proved", note="a_long_word" * 20),
    *(Card("nodes", "127", "230") for _ in range(3)),
)


def test_no_card_is_wider_than_its_place(tmp_path: Path) -> None:
    page = Page("m", "", "", cards=LONG)
    script = """
      const cards = [...document.querySelectorAll(".card")];
      return cards.filter(card => card.scrollWidth > card.clientWidth).map(card => card.innerText);
    """
    assert found_in(page, script, tmp_path) == []


def test_nodes_that_are_not_drawn_are_counted(tmp_path: Path) -> None:
    before, after = before_and_after(20)
    page = Page("m", "", "", before=replace(before, left_out=5), after=after)
    script = 'return [0, 1].map(pane => document.getElementById("caption" + pane).innerText);'
    told = found_in(page, script, tmp_path)
    assert told[0].endswith("; not drawn: 5 for shapes and constants")
    assert told[1].endswith(" Transpose")


def test_a_link_leads_to_its_node(tmp_path: Path) -> None:
    page = Page("m", "", "", before=chain(["Relu"] * 40 + ["T"] + ["Relu"] * 40))
    script = "return { name: page.graph.any(page.view.selected).n };"
    assert found_in(page, script, tmp_path, "#node=Relu70")["name"] == "Relu70"
