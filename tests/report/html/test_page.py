"""The page: what is drawn, where, and that texts of a model stay texts."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from itertools import pairwise
from typing import Any
from zlib import decompress

import pytest

from relayout.report.html.arranging import GAP, arranged
from relayout.report.html.drawn import DrawnGraph, DrawnNode, DrawnValue
from relayout.report.html.page import PLAIN_BYTES, Card, Page, PageTable
from relayout.report.html.pairing import NEW, REMOVED, RESTATED, SAME, paired
from relayout.report.html.picture import OPENED, picture
from tests.report.html.chains import HOSTILE, before_and_after, branching, chain


def embedded(html: str) -> Any:
    """The data of a page, as its script reads them."""
    opening = html.index('id="data">') + len('id="data">')
    text = html[opening : html.index("</script>", opening)]
    return json.loads(text if text.startswith("{") else decompress(b64decode(text)))


def items_of(data: Any) -> list[int]:
    return [item for box in data["boxes"] for layer in box["layers"] for item in layer]


def test_what_means_the_same_is_one_node_whatever_it_is_called() -> None:
    before = chain(["T", "Conv", "T", "Relu"], ["a", "b", "c", "d"])
    after = chain(["Conv", "Relu", "T"], ["other", "names", "z"])
    pairs = paired(before, after)
    named = {
        (before.nodes[p.before].name if p.before is not None else None)
        or (after.nodes[p.after].name if p.after is not None else ""): p.state
        for p in pairs.nodes
    }
    assert named["a"] == named["c"] == REMOVED
    assert named["b"] in (SAME, RESTATED)
    assert named["d"] in (SAME, RESTATED)
    assert [p.state for p in pairs.nodes].count(NEW) == 1


def test_nodes_come_after_what_they_read() -> None:
    pairs = paired(*before_and_after(80))
    assert all(edge.source < edge.target for edge in pairs.edges)


def test_what_is_moved_against_the_direction_of_the_graph_is_drawn_too() -> None:
    before, after = chain(["Conv", "Relu"]), chain(["Relu", "Conv"])
    assert len(paired(before, after).nodes) >= 4


@pytest.mark.parametrize("count", [20, 2000])
def test_every_node_is_in_one_box(count: int) -> None:
    before, after = before_and_after(count)
    data = picture(before, after)
    found = items_of(data)
    every = range(len(data["nodes"]) + len(data["boxes"]))
    assert sorted(found) == [item for item in every if item != len(data["nodes"])]


def test_repeated_blocks_are_folded_and_one_of_them_is_open() -> None:
    data = picture(*before_and_after(800))
    titles = [box["t"] for box in data["boxes"]]
    assert "block 1 of 99" in titles
    assert "98 more like block 1" in titles
    shown = sum(len(layer) for at in data["open"] for layer in data["boxes"][at]["layers"])
    assert len(data["open"]) > 1
    assert shown <= OPENED


@pytest.mark.parametrize("graph", [branching(2000), chain(["T", "Relu"] * 10_000)])
def test_no_level_has_more_than_can_be_read(graph: Any) -> None:
    data = picture(graph, None)
    assert max(sum(map(len, box["layers"])) for box in data["boxes"]) <= 160


def test_boxes_have_no_cycles() -> None:
    data = picture(branching(300), None)
    parents = {
        item: at for at, box in enumerate(data["boxes"]) for i in box["layers"] for item in i
    }
    count = len(data["nodes"])

    def path(item: int) -> list[int]:
        found = [item]
        while parents[item]:
            item = parents[item] + count
            found.append(item)
        return found[::-1]

    layer = {i: n for box in data["boxes"] for n, items in enumerate(box["layers"]) for i in items}
    for source, target, *_ in data["edges"]:
        one, other = path(source), path(target)
        at = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        assert layer[one[at]] < layer[other[at]]


def test_items_of_a_layer_stand_side_by_side() -> None:
    widths = [100, 60, 60, 200, 60, 100]
    placed = arranged(widths, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (4, 5), (0, 5)])
    for layer in placed.layers:
        for left, right in pairwise(layer):
            room = (widths[left] + widths[right]) / 2 + GAP
            assert placed.x[right] - placed.x[left] >= room - 1
    assert placed.bends[0, 5]


def test_an_edge_from_outside_goes_past_the_layers_before_its_reader() -> None:
    placed = arranged([50, 50, 50], [(0, 1), (1, 2)], entries=[(9, 0), (9, 2)], exits=[0])
    assert list(placed.entries) == [(9, 2)]
    assert len(placed.entries[9, 2]) == 3
    assert list(placed.exits) == [0]


def test_names_are_data_and_never_markup() -> None:
    graph = chain(["T", "Relu"], [HOSTILE, "b"])
    table = PageTable(HOSTILE, (HOSTILE,), ((HOSTILE,),))
    page = Page(
        HOSTILE, HOSTILE, HOSTILE, cards=(Card(HOSTILE, HOSTILE),), before=graph, tables=(table,)
    )
    html = page.html()
    assert html.count("<img") == 0
    assert html.count("</script>") == 2
    assert embedded(html)["graph"]["nodes"][1]["b"]["n"] == HOSTILE


def test_large_data_is_compressed_and_read_back() -> None:
    before, after = before_and_after(2000)
    page = Page("big", "", "", before=before, after=after)
    html = page.html()
    assert 'type="application/octet-stream"' in html
    assert len(json.dumps(page.data())) > PLAIN_BYTES
    assert embedded(html) == json.loads(json.dumps(page.data()))
    assert len(html) < 3_000_000


def test_the_same_records_give_the_same_bytes() -> None:
    pages = [Page("a", "b", "c", before=branching(200), after=chain(["T"])) for _ in range(2)]
    assert pages[0].html() == pages[1].html()


def test_a_page_asks_for_nothing_from_outside() -> None:
    html = Page("a", "b", "c", before=chain(["T"])).html()
    assert "default-src 'none'" in html
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html


def test_a_new_node_that_reads_nothing_stands_before_its_reader() -> None:
    before = chain(["Relu", "Neg", "Exp", "Log"])
    values = (*before.values, DrawnValue("n"))
    added = replace(before.nodes[3], reads=(*before.nodes[3].reads, len(values) - 1))
    new = DrawnNode("Sin", "new", (), (len(values) - 1,))
    nodes = (*before.nodes[:3], new, added, *before.nodes[4:])
    pairs = paired(before, DrawnGraph(nodes, values))
    places = {pairs.drawn(place).name: place for place in range(len(pairs.nodes))}
    assert places["Relu0"] < places["new"] < places["Exp2"]
