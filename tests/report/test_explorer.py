"""Graphs for Model Explorer: all that is named is there, and what is the same has one id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from relayout.cli import main
from relayout.cli.demo_model import network
from relayout.report.explorer import AFTER, BEFORE, GRAPHS, NODE_DATA, explorer_files
from tests.report.html.chains import chain


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(network().SerializeToString())
    return path


def written(folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The nodes of each graph by id, and what is coloured."""
    held = json.loads((folder / GRAPHS).read_text())
    nodes = {graph["id"]: {node["id"]: node for node in graph["nodes"]} for graph in held["graphs"]}
    assert all(len(nodes[graph["id"]]) == len(graph["nodes"]) for graph in held["graphs"])
    return nodes, json.loads((folder / NODE_DATA).read_text())


def test_both_graphs_of_optimize_are_written(model: Path, tmp_path: Path) -> None:
    command = ["optimize", str(model), "-o", str(tmp_path / "out.onnx")]
    assert main([*command, "--model-explorer", str(tmp_path / "graphs")]) == 0
    nodes, data = written(tmp_path / "graphs")
    moved = {
        name: {key for key, node in each.items() if node["label"] == "Transpose"}
        for name, each in nodes.items()
    }
    assert (len(moved[BEFORE]), len(moved[AFTER])) == (8, 1)
    assert {name: set(each["results"]) for name, each in data.items()} == moved
    assert nodes[AFTER].keys() < nodes[BEFORE].keys(), "what computes the same has one id"
    why = [item for item in nodes[AFTER]["transpose_0"]["attrs"] if item["key"].startswith("why")]
    assert len(why) == 3


def test_edges_lead_from_nodes_that_are_there(model: Path, tmp_path: Path) -> None:
    assert main(["inspect", str(model), "--model-explorer", str(tmp_path)]) == 0
    nodes, _ = written(tmp_path)
    assert list(nodes) == [BEFORE]
    edges = [edge for node in nodes[BEFORE].values() for edge in node["incomingEdges"]]
    assert len(edges) >= len(nodes[BEFORE]) - 1
    for edge in edges:
        source = nodes[BEFORE][edge["sourceNodeId"]]
        outputs = [output["id"] for output in source["outputsMetadata"]]
        assert edge["sourceNodeOutputId"] in outputs


def test_names_that_occur_twice_get_ids_of_their_own() -> None:
    graph = chain(["Relu", "Relu", "Relu"], ["a/b/same", "a/b/same", ""])
    nodes = explorer_files("m", graph, None)[GRAPHS]["graphs"][0]["nodes"]
    assert [node["id"] for node in nodes] == [
        *("input x", "a/b/same", "a/b/same (2)", "Relu", "output y")
    ]
    assert [node["namespace"] for node in nodes] == ["", "a/b", "a/b", "", ""]


def test_a_folder_that_cannot_be_made_is_refused_at_once(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    command = ["optimize", str(model), "-o", str(out), "--model-explorer"]
    assert main([*command, str(tmp_path / "missing" / "graphs")]) == 2
    assert main([*command, str(model)]) == 2
    assert not out.exists()
