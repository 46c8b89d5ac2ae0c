"""Where verification settles nothing, less is changed, and in the end nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

import relayout
from relayout.cli import main
from relayout.cli.codes import DONE
from relayout.verify.isolated import compare_isolated
from relayout.verify.verdict import NumericOptions, NumericVerdict, unknown
from tests.graph import makers

REASON = "nothing here runs it"
MODEL = """<ir_version: 10, opset_import: ["" : 17]>
g (float[2,3,4] x, float[3] bias) => (float[3,2,4] y) <float[3] bias = {1, 2, 3}> {
    a = Transpose<perm = [0, 2, 1]>(x)
    b = Add(a, bias)
    c = Transpose<perm = [0, 2, 1]>(b)
    d = Relu(c)
    y = Transpose<perm = [1, 0, 2]>(d)
}"""
WITH_FUNCTIONS = """<ir_version: 10, opset_import: ["" : 17, "own" : 1]>
g (float[2,3] x) => (float[2,3] y) {
    a = Transpose<perm = [1, 0]>(x)
    b = own.twice(a)
    y = Transpose<perm = [1, 0]>(b)
}
<domain: "own", opset_import: ["" : 17]> twice (u) => (w) { w = Add(u, u) }"""


def is_unknown(_before: Path, _after: Path, _options: NumericOptions) -> NumericVerdict:
    return unknown(REASON)


def differs(_before: Path, _after: Path, _options: NumericOptions) -> NumericVerdict:
    return NumericVerdict("differs", failing=("y",))


def written(text: str, folder: Path) -> Path:
    return makers.write(onnx.parser.parse_model(text), folder / "in.onnx")


def around(body: str, *more: str) -> str:
    """What a proof cannot follow, between Transposes, in a model that no runtime runs."""
    inputs = ", ".join(("float[2,3,4,5] x", *more))
    return f"""<ir_version: 10, opset_import: ["" : 24, "own" : 1]>
    g ({inputs}) => (float[2,3,p,q] y) {{
        a = Transpose<perm = [0, 2, 3, 1]>(x)
        {body}
        c = Transpose<perm = [0, 3, 1, 2]>(b)
        d = Transpose<perm = [1, 0, 3, 2]>(c)
        e = Relu(d)
        f = Transpose<perm = [1, 0, 3, 2]>(e)
        y = own.Unheard(f)
    }}"""


NOT_FOLLOWED = {
    "q": around("q, s, z = DynamicQuantizeLinear(a) b = DequantizeLinear(q, s, z)"),
    "b": around("b = CastLike(a, x)"),
    "resized": around("resized = Resize(a, , , to) b = Neg(resized)", "int64[4] to"),
}
"""By the name of a node, or of its first result, a model with it."""


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_the_proof_does_not_follow_is_kept_and_the_rest_is_proved(
    name: str, tmp_path: Path
) -> None:
    given, output = written(NOT_FOLLOWED[name], tmp_path), tmp_path / "out.onnx"
    result = relayout.optimize(given, output)
    assert result.changed
    assert result.verdict is not None
    assert result.verdict.proof is not None
    assert result.verdict.proof.identical
    assert 0 < result.after.transposes < result.before.transposes
    (told,) = (note for note in result.record().notices if "kept as given" in note)
    assert f" {name}," in told
    verdicts = [attempt.verdict for attempt in result.attempts]
    assert verdicts.index("dropped: it cannot be verified") < verdicts.index("kept")
    assert output.is_file()


def test_a_certificate_of_a_model_with_nodes_kept_holds(tmp_path: Path) -> None:
    given, output = written(NOT_FOLLOWED["b"], tmp_path), tmp_path / "out.onnx"
    proof = tmp_path / "proof.json"
    relayout.optimize(given, output, certificate=proof)
    assert relayout.check_certificate(json.loads(proof.read_text()), given, output) == []


def test_options_that_were_asked_for_are_still_offered(tmp_path: Path) -> None:
    """What would leave fewer Transposes is known before anything is verified."""
    text = NOT_FOLLOWED["b"].replace("(float[2,3,p,q] y)", "(float[p,q,r,s] y)")
    text = text.replace("y = own", "h = own").replace("}", "y = Transpose<perm = [3,2,1,0]>(h) }")
    for each in (text, MODEL):
        given = written(each, tmp_path)
        plain = relayout.optimize(given, suggest=True, verify=False)
        for comparing in (compare_isolated, is_unknown):
            found = relayout.optimize(given, suggest=True, comparing=comparing)
            assert found.offers == plain.offers != ()


def test_names_of_nodes_are_taken_as_they_are(tmp_path: Path) -> None:
    """Those with wildcards select no other nodes."""
    given = onnx.parser.parse_model(NOT_FOLLOWED["b"])
    given.graph.node[1].name = "any[*]"
    result = relayout.optimize(given)
    assert result.choose.terms.target.gate.selectors == ("any[[][*]]", "y")
    assert result.changed


def test_a_model_of_which_nothing_is_known_is_written_as_it_came(tmp_path: Path) -> None:
    given, output = written(MODEL, tmp_path), tmp_path / "out.onnx"
    proof = tmp_path / "proof.json"
    result = relayout.optimize(given, output, certificate=proof, comparing=is_unknown)
    assert result.accepted
    assert not result.changed
    assert result.model == onnx.load(given)
    assert output.read_bytes() == given.read_bytes()
    assert not proof.exists()
    assert "no certificate: the model is as it was" in result.record().notices
    assert "kept" not in [attempt.verdict for attempt in result.attempts]
    assert result.after == result.before
    assert not result.least
    assert REASON in repr(result)
    with pytest.raises(relayout.RelayoutError, match="as it was"):
        result.certificate()


def test_a_model_as_it_came_is_reported_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without memory nothing can be compared."""
    given, output = written(MODEL, tmp_path), tmp_path / "out.onnx"
    words = ["-o", str(output), "--memory", "0.01"]
    assert main(["optimize", str(given), *words]) == DONE
    printed = " ".join(capsys.readouterr().out.split())
    assert "the model is as it was, since what was made of it cannot be verified, " in printed
    assert "--memory allows more; --no-verify writes it anyway; wrote" in printed
    assert "nothing better" not in printed
    assert main(["optimize", str(given), *words, "--json"]) == DONE
    record = json.loads(capsys.readouterr().out)
    assert record["withheld"].startswith("cannot be verified, the runtime needed more than")
    assert not record["changed"]
    assert not record["optimal"]


def test_a_page_of_a_model_as_it_came_has_the_reason(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    relayout.optimize(written(MODEL, tmp_path), report=page, comparing=is_unknown)
    assert REASON in page.read_text(encoding="utf-8")


FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a newer opset": (MODEL, {"opset": 20}),
    "constants in place of defaults": (MODEL, {"fix_defaults": True}),
    "inputs in any order": (MODEL, {"free_inputs": True}),
    "outputs in any order": (MODEL, {"free_outputs": True}),
    "an input in another layout": (MODEL, {"input_layouts": {"x": "NWC"}}),
    "no functions": (WITH_FUNCTIONS, {"inline_functions": True}),
}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_written_in_place_of_what_was_asked_for(form: str, tmp_path: Path) -> None:
    """The given model is no answer where a result was to have another form."""
    text, options = FORMS[form]
    given, output = written(text, tmp_path), tmp_path / "out.onnx"
    result = relayout.optimize(given, output, comparing=is_unknown, **options)
    assert not result.accepted
    assert not output.exists()


def test_numbers_that_differ_are_no_reason_to_write_anything(tmp_path: Path) -> None:
    given, output = written(MODEL, tmp_path), tmp_path / "out.onnx"
    for result in (
        relayout.optimize(given, output, comparing=differs),
        relayout.fuse(given, output, comparing=differs),
    ):
        assert not result.accepted
        assert not output.exists()


def test_a_verdict_that_settles_it_the_second_time_is_taken(tmp_path: Path) -> None:
    """A comparison that was cut short is no verdict on what keeps nodes as they are."""
    calls: list[Path] = []

    def first_unknown(before: Path, after: Path, options: NumericOptions) -> NumericVerdict:
        calls.append(after)
        found = compare_isolated(before, after, options)
        return found if len(calls) > 1 else replace(unknown(REASON), proof=found.proof)

    given = written(NOT_FOLLOWED["b"].replace("y = own.Unheard(f)", "y = Neg(f)"), tmp_path)
    result = relayout.optimize(given, comparing=first_unknown)
    assert len(calls) == 2
    assert result.changed
    assert result.accepted


@pytest.mark.parametrize("wraps", [False, True])
def test_a_model_whose_groups_cannot_be_verified_is_written_without(
    wraps: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, output = written(MODEL, tmp_path), tmp_path / "out.onnx"
    result = relayout.fuse(given, output, wrap_all=wraps, comparing=is_unknown)
    assert result.accepted
    assert not result.changed
    assert output.read_bytes() == given.read_bytes()
    assert REASON in result.record().withheld
    assert REASON in repr(result)
    words = ["-o", str(output), "--memory", "0.01"]
    assert main(["fuse", str(given), *words]) == DONE
    printed = " ".join(capsys.readouterr().out.split())
    assert "the model is as it was, since what was made of it cannot be verified" in printed


def test_groups_that_cannot_be_taken_apart_are_not_written(tmp_path: Path) -> None:
    fused = tmp_path / "fused.onnx"
    relayout.fuse(written(MODEL, tmp_path), fused, wrap_all=True)
    output = tmp_path / "out.onnx"
    result = relayout.fuse(fused, output, inline=True, comparing=is_unknown)
    assert not result.accepted
    assert not output.exists()
