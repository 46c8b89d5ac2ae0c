"""Profiles: limits of devices as values, in files, in the choice and in `relayout check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

import relayout
from relayout.cli import main
from relayout.cli.codes import DONE, REFUSED
from relayout.errors import RelayoutError
from relayout.graph.io.load import load
from relayout.graph.read import perm_of
from relayout.layout.permutation import Permutation
from relayout.ops.measure import moving_transposes
from relayout.targets.profiles.form import NodeForm
from relayout.targets.profiles.limits import limit_of
from relayout.targets.profiles.profile import profile_of, profile_of_record, shipped_names

SOFTMAX = """
<ir_version: 8, opset_import: ["" : 17]>
softmax (float[2,3,4,5] x) => (float[2,3,4,5] y)
{
    a = Transpose<perm = [0, 2, 3, 1]>(x)
    b = Softmax<axis = -1>(a)
    y = Transpose<perm = [0, 3, 1, 2]>(b)
}
"""

FORKED = """
<ir_version: 8, opset_import: ["" : 17]>
forked (float[2,3,4] x) => (float[4,2,3] y, float[2,3,4] z)
{
    y = Transpose<perm = [2, 0, 1]>(x)
    a = Relu(x)
    b = Transpose<perm = [0, 2, 1]>(a)
    c = Softmax(b)
    z = Transpose<perm = [0, 2, 1]>(c)
}
"""


@pytest.mark.parametrize("name", shipped_names())
def test_every_limit_of_a_shipped_profile_names_its_source(name: str) -> None:
    profile = profile_of(name)
    assert profile.summary
    assert profile.limits
    assert all(limit.source for limit in profile.limits)
    assert profile.opset is None or profile.opset.source
    assert profile.interface is None or profile.interface.source
    assert profile_of_record(profile.to_json()) == profile


def test_the_profiles_that_are_documented_are_there() -> None:
    wanted = {"litert", "litert-gpu", "qnn", "rknn", "tidl", "ethos-u", "coreml"}
    assert wanted == set(shipped_names())


def transposed(*lengths: int | str, perm: tuple[int, ...]) -> NodeForm:
    return NodeForm("Transpose", operands=(lengths,), perm=Permutation(perm))


def node(op_type: str, *lengths: int | str, **attributes: Any) -> NodeForm:
    return NodeForm(op_type, attributes, operands=(lengths,))


CASES: list[tuple[dict[str, Any], NodeForm, NodeForm]] = [
    ({"rank": 3}, node("Relu", 2, 3, 4), node("Relu", 2, 3, 4, 5)),
    ({"rank": 3, "op": "Pad"}, node("Relu", 1, 2, 3, 4), node("Pad", 1, 2, 3, 4)),
    ({"rank": 2, "without_units": True}, node("Relu", 1, 3, 1, 4), node("Relu", 2, 3, 1, 4)),
    ({"axes": [-1], "op": "Softmax"}, node("Softmax", 2, 3, axis=1), node("Softmax", 2, 3, axis=0)),
    (
        {"attribute": "transA", "values": [0], "op": ["Gemm"]},
        node("Gemm", 2, 3, transA=0),
        node("Gemm", 2, 3, transA=1),
    ),
    (
        {"perms": [[0, 2, 1]], "above": 20},
        transposed(2, 2, 5, perm=(1, 0, 2)),
        transposed(2, 3, 5, perm=(1, 0, 2)),
    ),
    ({"perms": []}, transposed(1, 2, 5, perm=(1, 0, 2)), transposed(2, 2, 5, perm=(0, 2, 1))),
    ({"plane": 12}, transposed(9, 3, 4, perm=(1, 0, 2)), transposed(9, 3, 5, perm=(1, 0, 2))),
    (
        {"last_axis_not_to": [0], "above_rank": 2},
        transposed(2, 3, perm=(1, 0)),
        transposed(2, 3, 4, perm=(2, 0, 1)),
    ),
    (
        {"moved": 2},
        transposed(2, 3, 4, 1, perm=(1, 3, 2, 0)),
        transposed(2, 3, 4, 1, perm=(2, 3, 1, 0)),
    ),
    ({"falls_back": True, "op": "Einsum"}, node("MatMul", 2, 3), node("Einsum", 2, 3)),
    ({"known_lengths": True}, node("Relu", 2, 3), node("Relu", "N", 3)),
]


@pytest.mark.parametrize(("record", "fitting", "breaking"), CASES)
def test_a_limit_refuses_what_it_states(
    record: dict[str, Any], fitting: NodeForm, breaking: NodeForm
) -> None:
    limit = limit_of({**record, "source": "a page"})
    assert limit.breaks(fitting) is None
    assert limit.breaks(breaking)


def test_what_a_device_does_not_run_is_refused_in_the_choice() -> None:
    given = onnx.parser.parse_model(SOFTMAX)
    free = relayout.optimize(given, minimize="count")
    within = relayout.optimize(given, minimize="count", profile="tidl")
    assert (free.after.transposes, within.after.transposes) == (0, 2)
    assert within.accepted
    assert "tidl does not run Softmax so" in str(within.record().left)


def test_a_transpose_that_runs_elsewhere_costs_more(tmp_path: Path) -> None:
    """Both Transposes of `x` could be shared or not; only one perm runs on the device."""
    own = tmp_path / "own.toml"
    own.write_text('[[limit]]\nperms = [[0, 2, 1]]\nsource = "a page"\n')
    given = onnx.parser.parse_model(FORKED)
    plain, within = relayout.optimize(given), relayout.optimize(given, profile=own)
    assert plain.accepted
    assert within.accepted
    assert within.before.bytes_moved > plain.before.bytes_moved
    perms = [perm_of(node) for _, node in moving_transposes(load(within.model).ir)]
    assert perms == [Permutation.of(2, 0, 1)]


def test_a_certificate_holds_the_profile_it_was_made_for() -> None:
    given = onnx.parser.parse_model(SOFTMAX)
    result = relayout.optimize(given, minimize="count", profile="tidl")
    assert relayout.check_certificate(result.certificate(), given, result.model) == []


def test_an_opset_that_a_device_does_not_read_is_refused() -> None:
    with pytest.raises(RelayoutError, match="rknn reads opsets up to 19"):
        relayout.optimize(onnx.parser.parse_model(SOFTMAX), profile="rknn", opset=21)


def test_check_lists_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, own = tmp_path / "m.onnx", tmp_path / "own.toml"
    onnx.save(onnx.parser.parse_model(SOFTMAX), given)
    assert main(["check", str(given), "--profile", "coreml"]) == DONE
    assert "fits coreml" in capsys.readouterr().out
    own.write_text(
        'summary = "small"\n[opset]\nmost = 13\nsource = "a page"\n'
        '[[limit]]\nperms = [[0, 2, 3, 1]]\nsource = "another page"\n'
    )
    assert main(["check", str(given), "--profile", str(own)]) == REFUSED
    told = capsys.readouterr().out
    assert "2 places do not fit own" in told
    assert "opset 17, those up to 13 are read" in told
    assert "stated by another page" in told
    assert main(["check", str(given), "--profile", str(own), "--json"]) == REFUSED
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert [each["operator"] for each in model["misfits"]] == ["model", "Transpose"]
    assert model["misfits"][1]["bytes_copied"] == 2 * 2 * 3 * 4 * 5 * 4


BAD = {
    "no = 1": "has no key 'no'",
    "[[limit]]\nsource = ''": "has none of the keys",
    "[[limit]]\nrank = 3": "is not complete",
    "[[limit]]\nrank = 3\nmost = 4\nsource = ''": "has no key 'most'",
    "not toml": "is not TOML",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_states_no_profile_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(RelayoutError, match=BAD[text]):
        profile_of(path)


def test_a_profile_that_is_not_there_is_refused() -> None:
    with pytest.raises(RelayoutError, match="unknown profile"):
        profile_of("nothing")
    with pytest.raises(RelayoutError, match="cannot read"):
        profile_of("nothing.toml")
