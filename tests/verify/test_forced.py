"""Branches that no input takes and loops of other lengths are compared all the same."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from relayout.verify.numeric import compare

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'


def model(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(HEADER + text), path)
    return path


def branching(path: Path, then: str, other: str, condition: str = "c") -> Path:
    text = f"""g (float[2,4] x, bool c) => (float[2,4] y) {{
        total = ReduceSum<keepdims=0>(x)
        far = Constant<value_float=1e6>()
        never = Greater(total, far)
        y = If({condition}) <
            then_branch = t () => (float[2,4] a) {{ {then} }},
            else_branch = e () => (float[2,4] b) {{ {other} }}
        >
    }}"""
    return model(path, text)


THEN, OTHER = "a = Relu(x)", "b = Softmax<axis=1>(x)"


@pytest.mark.parametrize("condition", ["c", "never"])
def test_both_branches_are_compared(tmp_path: Path, condition: str) -> None:
    before = branching(tmp_path / "a.onnx", THEN, OTHER, condition)
    verdict = compare(before, before)
    assert verdict.equal
    assert verdict.forced == ("then_branch", "else_branch")
    assert "2 more ways through control flow" in verdict.summary()
    wrong = branching(tmp_path / "b.onnx", "a = Neg(x)", OTHER, condition)
    assert compare(before, wrong).status == "differs"
    wrong = branching(tmp_path / "c.onnx", THEN, "b = Softmax<axis=0>(x)", condition)
    assert compare(before, wrong).status == "differs"


def test_a_branch_in_a_branch_is_compared(tmp_path: Path) -> None:
    def nested(path: Path, inner: str) -> Path:
        body = f"""b = If(never) <
            then_branch = t2 () => (float[2,4] p) {{ {inner} }},
            else_branch = e2 () => (float[2,4] q) {{ q = Abs(x) }}
        >"""
        return branching(path, THEN, body, "never")

    before = nested(tmp_path / "a.onnx", "p = Sigmoid(x)")
    assert len(compare(before, before).forced) == 4
    verdict = compare(before, nested(tmp_path / "b.onnx", "p = Tanh(x)"))
    assert verdict.status == "differs"
    assert verdict.under == "else_branch, in it then_branch"
    assert "(else_branch, in it then_branch)" in verdict.summary()


def test_a_branch_that_the_model_cannot_take_is_left_out(tmp_path: Path) -> None:
    then = "s = Constant<value_ints=[5,5]>() a = Reshape(x, s)"
    path = branching(tmp_path / "a.onnx", then, OTHER, "never")
    assert compare(path, path).forced == ("else_branch",)


def looping(path: Path, first: str, body: str, rounds: int) -> Path:
    text = f"""g (float[2,4] x) => (float[2,4] y) {{
        rounds = Constant<value_int={rounds}>()
        on = Constant<value = bool {{1}}>()
        s = {first}
        y = Loop(rounds, on, s) <body = b (int64 i, bool c, float[2,4] v) =>
            (bool d, float[2,4] w) {{ d = Identity(c) w = {body} }}>
    }}"""
    return model(path, text)


def test_loops_of_no_round_one_and_two_are_compared(tmp_path: Path) -> None:
    before = looping(tmp_path / "a.onnx", "Relu(x)", "Abs(v)", 3)
    verdict = compare(before, before)
    assert verdict.forced == ("0 rounds", "1 round", "2 rounds")
    # Rounds hide what a value was before them, and one round hides what an even number does.
    wrong = looping(tmp_path / "b.onnx", "Abs(x)", "Abs(v)", 3)
    assert compare(before, wrong).status == "differs"
    hidden = looping(tmp_path / "c.onnx", "Relu(x)", "Neg(v)", 0)
    given = looping(tmp_path / "d.onnx", "Relu(x)", "Abs(v)", 0)
    verdict = compare(given, hidden)
    assert verdict.status == "differs"
    assert verdict.under == "1 round"


def test_tensors_inside_are_compared_by_name(tmp_path: Path) -> None:
    def saturated(path: Path, name: str, op_type: str) -> Path:
        text = f"""g (float[2,4] x) => (float[2,4] y) {{
            {name} = {op_type}(x)
            far = Constant<value_float=1e6>()
            y = Max({name}, far)
        }}"""
        return model(path, text)

    before = saturated(tmp_path / "a.onnx", "h", "Sin")
    assert compare(before, before).inner == 2
    verdict = compare(before, saturated(tmp_path / "b.onnx", "h", "Cos"))
    assert verdict.status == "differs"
    assert verdict.inner_different == ("h",)
    assert "tensor 'h' inside of the models differs" in verdict.summary()
    assert compare(before, saturated(tmp_path / "c.onnx", "k", "Cos")).equal, "no such name"


def test_a_name_may_mean_another_order(tmp_path: Path) -> None:
    def turned(path: Path, perm: str) -> Path:
        text = f"""g (float[4,4] x) => (float[1,1] y) {{
            h = Transpose<perm={perm}>(x)
            y = ReduceMax<axes=[0,1]>(h)
        }}"""
        return model(path, text)

    before, after = turned(tmp_path / "a.onnx", "[1,0]"), turned(tmp_path / "b.onnx", "[0,1]")
    verdict = compare(before, after)
    assert verdict.equal
    assert verdict.inner == 1
    assert verdict.inner_different == ()


def test_another_tensor_of_the_same_name_is_reported(tmp_path: Path) -> None:
    """The outputs show that it does not matter."""

    def scaled(path: Path, first: str, second: str) -> Path:
        text = f"""g (float[4,4] x) => (float[4,4] y) <
            float f = {{{first}}}, float s = {{{second}}}> {{
            h = Mul(x, f)
            y = Mul(h, s)
        }}"""
        return model(path, text)

    before, after = scaled(tmp_path / "a.onnx", "2", "4"), scaled(tmp_path / "b.onnx", "4", "2")
    verdict = compare(before, after)
    assert verdict.equal
    assert verdict.inner_different == ("h",)
