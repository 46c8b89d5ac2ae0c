"""A child process shields its caller from what models do."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from relayout.verify.child import MOST_AHEAD
from relayout.verify.isolated import (
    BLOCK,
    EXTERNAL_KEY,
    MEMORY_OF_ANY,
    MEMORY_PER_BYTE,
    Standby,
    compare_isolated,
    default_memory,
)
from relayout.verify.numeric import compare
from relayout.verify.verdict import NumericOptions, NumericVerdict
from tests.verify.models import constant, node, one_node, plus, save, tensor

TWO_GIGABYTES = 2 * 10**9


def test_the_verdict_is_the_same(tmp_path: Path) -> None:
    before, after = plus(tmp_path / "a.onnx", 1.0), plus(tmp_path / "b.onnx", 2.0)
    options = NumericOptions(shapes={"x": (2, 3)}, fixed={"x": np.ones((2, 3), np.float32)})
    verdict = compare_isolated(before, after, options)
    assert replace(verdict, proof=None) == compare(before, after, options)
    assert verdict.proof is not None
    assert not verdict.proof.holds
    assert verdict.summary() == (
        "differs: output 'y' at [0,0]: 2.0 became 3.0 (error 5.0e-01, would pass at 5.0e-01)"
    )


@pytest.mark.parametrize("other", ["a", "b"])
def test_verdicts_travel_as_json(tmp_path: Path, other: str) -> None:
    before = plus(tmp_path / "a.onnx", 1.0, ("N", "M"))
    plus(tmp_path / "b.onnx", 2.0, ("N", "M"))
    verdict = compare(before, tmp_path / f"{other}.onnx")
    assert NumericVerdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_a_bomb_does_not_go_off(tmp_path: Path) -> None:
    nodes = [
        node("ConstantOfShape", ["s"], ["c"]),
        node("ReduceMax", ["c"], ["m"], keepdims=0),
        node("Add", ["x", "m"], ["y"]),
    ]
    size = constant("s", [2**18, 2**18], np.int64)
    path = save(tmp_path / "a.onnx", nodes, [tensor("x", (2,))], [tensor("y", (2,))], [size])
    start = time.monotonic()
    verdict = compare_isolated(path, path, memory=TWO_GIGABYTES)
    assert verdict.status == "unknown"
    assert verdict.reason.startswith("the runtime needed more than 2 GB")
    assert time.monotonic() - start < 10


def expanding(path: Path, side: int) -> Path:
    """A model of a few bytes that makes a tensor of many."""
    nodes = [
        node("Expand", ["x", "s"], ["e"]),
        node("ReduceMax", ["e"], ["y"], keepdims=0),
    ]
    size = constant("s", [side, side, 2], np.int64)
    return save(path, nodes, [tensor("x", (2,))], [tensor("y", ())], [size])


def test_a_small_model_gets_little_memory_unless_more_is_asked_for(tmp_path: Path) -> None:
    path = expanding(tmp_path / "a.onnx", 2**15)
    verdict = compare_isolated(path, path)
    assert verdict.status == "unknown"
    assert verdict.reason == (
        "the runtime needed more than 6 GB, the most it was allowed; --memory allows more"
    )
    path = expanding(tmp_path / "a.onnx", 2**13)
    assert compare_isolated(path, path, NumericOptions(memory=0.5)).status == "unknown"
    assert compare_isolated(path, path, NumericOptions(memory=5)).equal


def test_memory_grows_with_what_models_store(tmp_path: Path) -> None:
    small, large = one_node(tmp_path / "a.onnx", "Relu"), tmp_path / "b.onnx"
    plus(large, np.zeros(10**6), (10**6,))
    least, more = (default_memory(NumericOptions(), path) for path in (small, large))
    assert least is not None
    assert more is not None
    assert more - least > 60 * 10**6


@pytest.mark.parametrize("inside", [-1, 0, 3, 7, 8])
def test_a_data_file_is_found_wherever_a_model_names_it(tmp_path: Path, inside: int) -> None:
    """The key that names it lies across two blocks, after so many of its letters."""
    data = tmp_path / "data"
    data.write_bytes(bytes(4 * 10**6))
    path = plus(tmp_path / "a.onnx", np.zeros(10**6), (10**6,))
    model = onnx.load(path)
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="data")
    model.doc_string = "x" * BLOCK
    begins = model.SerializeToString().index(EXTERNAL_KEY)
    model.doc_string = "x" * (BLOCK - (begins - BLOCK) - inside)
    path.write_bytes(model.SerializeToString())
    assert path.read_bytes().index(EXTERNAL_KEY) == BLOCK - inside
    memory = default_memory(NumericOptions(), path)
    assert memory is not None
    assert memory - MEMORY_OF_ANY > MEMORY_PER_BYTE * data.stat().st_size


def endless(path: Path) -> Path:
    """A model that counts to two to the power of sixty."""
    body = helper.make_graph(
        [node("Identity", ["on"], ["still_on"]), node("Add", ["a", "one"], ["b"])],
        "body",
        [tensor("i", (), 7), tensor("on", (), 9), tensor("a", (2,))],
        [tensor("still_on", (), 9), tensor("b", (2,))],
    )
    constants = [
        constant("count", 2**60, np.int64),
        constant("on0", True, np.bool_),
        constant("one", [1, 1]),
    ]
    loop = node("Loop", ["count", "on0", "x"], ["y"], body=body)
    return save(path, [loop], [tensor("x", (2,))], [tensor("y", (2,))], constants)


def test_a_model_that_never_ends_is_stopped(tmp_path: Path) -> None:
    path = endless(tmp_path / "a.onnx")
    start = time.monotonic()
    verdict = compare_isolated(path, path, seconds=2.0)
    assert verdict.status == "unknown"
    assert verdict.reason == "the comparison took more than 2 s"
    assert time.monotonic() - start < 6


def test_a_child_that_cannot_even_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu")
    monkeypatch.setattr("sys.executable", str(tmp_path / "nothing"))
    assert "no process could be started" in compare_isolated(path, path).reason


def test_a_child_that_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu")
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crashing.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(crashing))
    assert compare_isolated(path, path).reason == "the comparison crashed (Segmentation fault)"


def test_memory_is_in_proportion_to_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu")
    monkeypatch.setattr("relayout.verify.isolated.SHARE_OF_MEMORY", 1e6)
    own = MEMORY_PER_BYTE * path.stat().st_size
    assert default_memory(NumericOptions(), path) == MEMORY_OF_ANY + own
    assert default_memory(NumericOptions(), path, path) == MEMORY_OF_ANY + 2 * own
    assert default_memory(NumericOptions(memory=1.5), path) == 1_500_000_000


def test_no_more_memory_than_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relayout.verify.isolated.SHARE_OF_MEMORY", 1e-6)
    path = one_node(tmp_path / "a.onnx", "Relu")
    assert (default_memory(NumericOptions(), path) or MEMORY_OF_ANY) < 10**8


def test_a_worker_ends_when_its_line_is_cut(tmp_path: Path) -> None:
    """What Linux does by itself, other systems do through the pipe that the parent holds."""
    script = (
        "import time, relayout.verify.worker as worker\n"
        "worker.end_with_parent = lambda: None\n"
        "worker.answer(lambda *_: time.sleep(60))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    line = child.stdin
    assert line is not None
    line.write(json.dumps({"memory": None, "options": NumericOptions().to_json()}) + "\n")
    line.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(4)
    line.close()
    assert child.wait(20) == 1


def test_a_process_that_started_before_compares_first(tmp_path: Path) -> None:
    path, other = one_node(tmp_path / "a.onnx", "Relu"), one_node(tmp_path / "b.onnx", "Neg")
    with Standby() as standby:
        standby.start()
        started = standby._child
        assert started is not None
        assert standby(path, path, NumericOptions()).equal
        assert started.process.returncode == 0
        # Others follow, each in a process of its own.
        assert standby(path, other, NumericOptions()).status == "differs"


def test_a_process_that_has_read_the_given_model_compares_alike(tmp_path: Path) -> None:
    path, other = one_node(tmp_path / "a.onnx", "Relu"), one_node(tmp_path / "b.onnx", "Neg")
    options = NumericOptions()
    for second in (path, other):
        with Standby() as standby:
            standby.start()
            standby.foresee(path, ["w"], options)
            standby.foresee(path, [], options)
            assert standby(path, second, options) == compare_isolated(path, second, options)


def test_what_cannot_be_foreseen_is_met_by_the_comparison(tmp_path: Path) -> None:
    path, options = one_node(tmp_path / "a.onnx", "Relu"), NumericOptions()
    (tmp_path / "b.onnx").write_bytes(b"no model")
    with Standby() as standby:
        standby.foresee(path, [], options)
        standby.start()
        standby.foresee(tmp_path / "none.onnx", [], options)
        standby.foresee(path, ["w" * MOST_AHEAD], options)
        assert standby(path, path, options).equal
    with Standby() as standby:
        standby.start()
        standby.foresee(tmp_path / "b.onnx", [], options)
        assert standby(path, path, options).equal


def test_a_process_that_is_not_asked_is_ended() -> None:
    with Standby() as standby:
        standby.start()
        started = standby._child
    assert started is not None
    assert started.process.returncode == -signal.SIGKILL


def test_that_none_can_start_is_told_by_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu")
    monkeypatch.setattr("sys.executable", str(tmp_path / "nothing"))
    with Standby() as standby:
        standby.start()
        assert "no process could be started" in standby(path, path, NumericOptions()).reason
