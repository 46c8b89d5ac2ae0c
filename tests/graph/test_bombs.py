"""Small files that ask for much are read and optimised within bounds, and never run without one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import helper

import relayout
from relayout.graph.io.load import load
from relayout.graph.shapes.infer import MOST_EXPANDED_NODES
from relayout.graph.shapes.propagation import FOLLOWED, MOST_ENTRIES, most_entries
from relayout.rewrite.folding import MOST_GROWTH, SMALL_BYTES
from tests.graph import makers
from tests.graph.bombs import DATA_BOMBS, NODE_BOMBS, many_expands, repeated_concat
from tests.graph.makers import call, function, model, node

MOST_KILOBYTES = 600_000
"""Of memory in use; libraries alone take a third of it."""

CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9,) * 2)
import relayout
for path in sys.argv[1:]:
    result = relayout.optimize(path, verify=False)
    relayout.fuse(path, verify=False)
    relayout.inspect(path)
    size = len(result.model.SerializeToString())
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(path, size, status["VmHWM"].split()[0], flush=True)
"""
"""What `getrusage` gives as the most memory begins with what the parent has."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells the most memory used")
def test_nothing_large_is_made_while_a_bomb_is_optimised(tmp_path: Path) -> None:
    bombs = {bomb.__name__: bomb for bomb in DATA_BOMBS} | NODE_BOMBS
    paths = [makers.write(bomb(), tmp_path / f"{name}.onnx") for name, bomb in bombs.items()]
    start = time.process_time()
    command = [sys.executable, "-c", CHILD, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for line in lines:
        _, size, kilobytes = line.split()
        assert int(size) < 2 * SMALL_BYTES, line
        assert int(kilobytes) < MOST_KILOBYTES, line
    assert time.process_time() - start < 1, "the child does the work"


def test_many_constants_grow_no_more_than_one_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is small enough to be folded alone."""
    assert MOST_GROWTH >= 16 * SMALL_BYTES
    most = 1 << 16
    monkeypatch.setattr("relayout.rewrite.folding.MOST_GROWTH", most)
    result = relayout.optimize(many_expands(64), verify=False).model
    folded = sum(len(tensor.raw_data) for tensor in result.graph.initializer)
    assert most // 2 < folded <= most + 1024


def test_functions_that_expand_to_too_many_nodes_are_not_run(tmp_path: Path) -> None:
    given = makers.write(makers.doubling_functions(20), tmp_path / "in.onnx")
    start = time.monotonic()
    result = relayout.fuse(given, tmp_path / "out.onnx", wrap_all=True)
    assert load(given).expanded_size > MOST_EXPANDED_NODES
    assert result.verdict is not None
    assert result.verdict.status == "unknown"
    assert str(MOST_EXPANDED_NODES) in result.verdict.reason
    assert str(MOST_EXPANDED_NODES) in result.record().withheld
    assert (tmp_path / "out.onnx").read_bytes() == given.read_bytes()
    assert time.monotonic() - start < 60


def test_functions_that_expand_to_too_many_nodes_are_not_compiled(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    given = makers.write(makers.doubling_functions(30), tmp_path / "in.onnx")
    with pytest.raises(relayout.RelayoutError, match="more than the 20000 that are compiled"):
        relayout.compile(given)


def test_a_bomb_that_goes_off_is_stopped_at_a_limit_that_is_stated(tmp_path: Path) -> None:
    little = relayout.NumericOptions(memory=3)
    for bomb in DATA_BOMBS[:3]:
        given = makers.write(bomb(), tmp_path / "in.onnx")
        result = relayout.optimize(given, tmp_path / "out", inputs=little)
        assert result.verdict is not None
        assert result.verdict.reason == (
            "the runtime needed more than 3 GB, the most it was allowed; --memory allows more"
        )
        assert result.withheld.startswith(f"cannot be verified, {result.verdict.reason}")
        assert (tmp_path / "out").read_bytes() == given.read_bytes()


def test_lists_that_inference_would_follow_are_counted() -> None:
    assert most_entries(repeated_concat()) == 2**36
    one = helper.make_tensor("one", 7, [3], [1, 2, 3])
    nodes = [node("Concat", "one one", "two", axis=0), node("Concat", "two one", "y", axis=0)]
    assert most_entries(model(nodes, initializers=[one])) == 9
    matrix = helper.make_tensor("one", 1, [3, 1], [1, 2, 3])
    assert most_entries(model(nodes, initializers=[matrix])) == 0


def test_what_is_no_list_is_not_counted() -> None:
    """Features that a network joins again and again, which is no bomb."""
    nodes = [node("Concat", "x x", "d0", axis=0)]
    for level in range(40):
        nodes.append(node("Relu", f"d{level}", f"r{level}"))
        nodes.append(node("Concat", f"r{level} r{level}", f"d{level + 1}", axis=0))
    one = helper.make_tensor("x", 1, [1], [1.0])
    assert most_entries(model(nodes, inputs=[], initializers=[one])) == 2


def test_all_that_onnx_follows_is_known() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    followed = {schema.name for schema in schemas if schema.has_data_propagation_function}
    assert followed == FOLLOWED | {"Concat", "Shape"}


def test_lists_that_functions_make_longer_are_counted() -> None:
    """Each function joins what the next one gives with itself."""
    functions = [
        function(
            f"f{level}",
            [
                call(f"f{level + 1}", "x", "a") if level < 5 else node("Cast", "x", "a", to=7),
                node("Concat", "a a", "y", axis=0),
            ],
        )
        for level in range(6)
    ]
    one = helper.make_tensor("one", 7, [1], [1])
    given = model(
        [call("f0", "one", "y")],
        initializers=[one],
        functions=functions,
        opsets=(("", 18), (functions[0].domain, 1)),
    )
    assert most_entries(given) == 2**6


def test_a_function_may_read_nothing() -> None:
    one = helper.make_node("Constant", [], ["y"], value_ints=[1, 2, 3])
    own = helper.make_function("local", "own", [], ["y"], [one], [helper.make_opsetid("", 18)])
    given = model([call("own", "", "y")], functions=[own], opsets=(("", 18), ("local", 1)))
    assert most_entries(given) == 3


def test_what_is_too_long_to_follow_is_reported() -> None:
    assert any(str(MOST_ENTRIES) in notice for notice in load(repeated_concat()).notices)
