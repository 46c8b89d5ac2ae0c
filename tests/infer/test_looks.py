"""What is assumed at Reshapes: the graphs of the document that lists the ways to look."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from relayout.cli import main
from relayout.errors import RelayoutError
from tests.infer.test_layouts import CHAIN, WEIGHT, layouts, seen
from tests.rewrite.rewriting import parse

LOOKS, WALKS = ("before", "after", "nearest"), ("forwards", "backwards")


def between(operators: int, *, reshape: str = "Reshape(OPERAND, split)") -> str:
    """A convolution, some Relus, a Reshape, a Relu, a Reshape, a product."""
    relus = "\n".join(f"r{i + 1} = Relu(r{i})" for i in range(operators))
    return f"""between (float[2,4,6,5] x, {WEIGHT}, float[3,7] m) => (float[2,40,7] y)
    <int64[3] split = {{2, -1, 3}}> {{
        r0 = Conv(x, w)
        {relus}
        b = Reshape(r{operators}, split)
        c = Relu(b)
        d = {reshape.replace("OPERAND", "c")}
        y = MatMul(d, m)
    }}"""


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(("look", "expected"), [("before", "Tensor"), ("after", "NTensor")])
def test_four_combinations_at_two_reshapes_in_a_row(look: str, walk: str, expected: str) -> None:
    """The convolution speaks for Tensor, the product for NTensor; both ends are fixed."""
    record = layouts(CHAIN, look, walk)
    assert seen(record, "x a b c g d y") == [
        *("NCHW", "NCHW", expected, expected, expected, "NTensor", "NTensor")
    ]
    assert record.conflicts == ()


@pytest.mark.parametrize(("operators", "expected"), [(0, "Tensor"), (2, "Tensor"), (3, "NTensor")])
def test_the_nearer_side_decides_and_a_draw_is_for_what_comes_before(
    operators: int, expected: str
) -> None:
    """Three steps lead from the first Reshape to the product, one more than its Relus back."""
    assert seen(layouts(between(operators), "nearest"), "b c d") == [expected, expected, "NTensor"]
    assert seen(layouts(between(operators), "before"), "b c") == ["Tensor"] * 2
    assert seen(layouts(between(operators), "after"), "b c") == ["NTensor"] * 2


def test_the_nearest_one_is_the_wrong_one_once_the_sides_are_exchanged() -> None:
    """Whichever side is nearer wins, so one Reshape satisfies one of its sides only."""
    near, far = between(0), between(5)
    assert seen(layouts(near, "nearest"), "b") == seen(layouts(near, "before"), "b")
    assert seen(layouts(far, "nearest"), "b") == seen(layouts(far, "after"), "b")
    assert seen(layouts(near, "nearest"), "b") != seen(layouts(far, "nearest"), "b")


@pytest.mark.parametrize("look", LOOKS)
def test_forwards_a_reshape_goes_from_what_comes_to_what_is_wanted(look: str) -> None:
    """Conv(NCHW), (NCHW)Reshape(NTensor), (NTensor)product; with an operator in between too."""
    text = f"""direct (float[2,4,6,5] x, {WEIGHT}, float[3,7] m) => (float[2,40,7] y)
    <int64[3] split = {{2, -1, 3}}> {{
        a = Conv(x, w)
        b = Relu(a)
        c = Reshape(b, split)
        y = MatMul(c, m)
    }}"""
    assert seen(layouts(text, look), "a b c") == ["NCHW", "NCHW", "NTensor"]
    assert seen(layouts(text, look, "backwards"), "b") != ["NCHW"], "backwards cannot know it"


@pytest.mark.parametrize(("look", "expected"), [("before", "Tensor"), ("after", "NTensor")])
def test_a_broadcast_is_not_inferred_backwards_either(look: str, expected: str) -> None:
    record = layouts(between(0, reshape="Expand(OPERAND, split)").replace("-1", "40"), look)
    assert seen(record, "b c d") == [expected, expected, "NTensor"]


@pytest.mark.parametrize(("look", "expected"), [("before", "NTensor"), ("after", "Tensor")])
def test_a_product_before_and_a_convolution_after(look: str, expected: str) -> None:
    """The sides exchanged; a convolution speaks for its own layout where the rank is its own."""
    text = f"""exchanged (float[2,40,3] x, float[3,3] m, {WEIGHT}) => (float[2,4,6,5] y)
    <int64[3] same = {{0, 0, 0}}, int64[4] image = {{2, 4, 6, 5}}> {{
        a = MatMul(x, m)
        b = Reshape(a, same)
        c = Relu(b)
        d = Reshape(c, image)
        y = Conv(d, w)
    }}"""
    assert seen(layouts(text, look), "a b c d") == ["NTensor", expected, expected, "NCHW"]


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_known_on_either_side_leaves_it_to_the_shape(look: str) -> None:
    text = """none (float[2,12] x) => (float[2,3,4] y, float[1,4,6] z)
    <int64[3] split = {2, 3, 4}, int64[3] one = {1, 4, 6}> {
        y = Reshape(x, split)
        z = Reshape(x, one)
    }"""
    assert seen(layouts(text, look), "x y z") == ["Tensor", "NTensor", "Tensor"]


@pytest.mark.parametrize("rank", range(1, 8))
def test_a_product_speaks_for_ntensor_at_ranks_three_to_six(rank: int) -> None:
    """Tensor fits every rank; what cannot be an NTensor stays a Tensor whoever is asked."""
    lengths = (24,) if rank == 1 else (2, *[1] * (rank - 2), 12)
    shape = ", ".join(map(str, lengths))
    text = f"""ranks (float[2,12] x, float[12,12] m) => (float[{shape}] y)
    <int64[{rank}] split = {{{shape}}}> {{
        a = MatMul(x, m)
        y = Reshape(a, split)
    }}"""
    expected = "NTensor" if 3 <= rank <= 6 else "Tensor"
    assert seen(layouts(text), "y") == [expected]


def test_an_unknown_walk_is_refused() -> None:
    with pytest.raises(RelayoutError, match="'up'"):
        layouts(CHAIN, "before", "up")


@pytest.mark.parametrize(("look", "expected"), [("before", "Tensor"), ("after", "NTensor")])
def test_the_option_of_the_command_line_changes_the_table(
    look: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chain.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(parse(CHAIN)), path)
    assert main(["inspect", str(path), "--layouts", "--look", look]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["b", "[2,40,3]", "-", expected, "forwards"] in rows
