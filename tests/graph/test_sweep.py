"""Lengths that are computed at run time and known all the same."""

from __future__ import annotations

import onnx
import pytest

from relayout.graph.io.load import load
from relayout.graph.read import Shape, shape_of
from relayout.layout.blocks import Size, is_invented, length_of, size_of
from relayout.rewrite.refine import refine_shapes

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def learned(text: str, *, opset: int = 21) -> dict[str, Shape | None]:
    header = HEADER.replace("21", str(opset))
    model = load(onnx.parser.parse_model(header + text)).ir
    refine_shapes(model)
    return {str(value.name): shape_of(value) for node in model.graph for value in node.outputs}


def test_a_target_put_together_from_lengths_is_known() -> None:
    found = learned(
        """g (float[B,S,120] x) => (float[P,Q,R,T] y)
           <int64[1] first = {0}, int64[1] second = {1}, int64[2] heads = {8, -1}> {
            shape = Shape(x)
            b = Gather<axis=0>(shape, first)
            s = Gather<axis=0>(shape, second)
            target = Concat<axis=0>(b, s, heads)
            r = Reshape(x, target)
            y = Relu(r)
        }"""
    )
    assert found["r"] == ("B", "S", 8, 15)


def test_arithmetic_of_lengths_gives_products() -> None:
    found = learned(
        """g (float[B,S,120] x) => (float[P,Q,R] y)
           <int64[1] zero = {0}, int64 at = {0}, int64 eight = {8}, int64[2] rest = {-1, 15}> {
            shape = Shape(x)
            b = Gather<axis=0>(shape, at)
            bh = Mul(b, eight)
            first = Unsqueeze(bh, zero)
            target = Concat<axis=0>(first, rest)
            r = Reshape(x, target)
            y = Relu(r)
        }"""
    )
    assert found["r"] is not None
    first, *rest = found["r"]
    assert isinstance(first, str)
    assert size_of(first) == Size(8, (("named", "B"),))
    assert rest == ["S", 15]


def test_one_length_follows_from_the_number_of_elements() -> None:
    found = learned(
        """g (float[B,6,4] x, int64[1] n) => (float[P,Q] y) <int64[1] four = {4}> {
            m = Neg(n)
            target = Concat<axis=0>(m, four)
            r = Reshape(x, target)
            y = Relu(r)
        }"""
    )
    assert found["r"] is not None
    first, last = found["r"]
    assert isinstance(first, str)
    assert size_of(first) == Size(6, (("named", "B"),))
    assert last == 4


def test_two_lengths_do_not_follow() -> None:
    found = learned(
        """g (float[B,6,4] x, int64[2] n) => (float[P,Q] y) {
            m = Neg(n)
            r = Reshape(x, m)
            y = Relu(r)
        }"""
    )
    assert found["r"] is not None
    assert all(map(is_invented, found["r"]))
    assert len(set(found["r"])) == 2


def test_nothing_is_known_after_a_division_with_a_remainder() -> None:
    found = learned(
        """g (float[B,S] x) => (float[P,Q] y)
           <int64[1] one = {1}, int64[1] two = {2}, int64[1] rest = {-1}> {
            shape = Shape(x)
            s = Gather<axis=0>(shape, one)
            half = Div(s, two)
            target = Concat<axis=0>(half, rest)
            r = Reshape(x, target)
            y = Relu(r)
        }"""
    )
    assert found["r"] is not None
    assert all(map(is_invented, found["r"]))


def test_what_reads_a_known_length_knows_it_too() -> None:
    found = learned(
        """g (float[B,S,8] x, float[8,24] w) => (float[P,Q,R] y)
           <int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {8}> {
            shape = Shape(x)
            cast = Cast<to=6>(shape)
            tail = Slice(cast, zero, one)
            b = Cast<to=7>(tail)
            s = Gather<axis=0>(shape, one)
            target = Concat<axis=0>(s, b, last)
            r = Reshape(x, target)
            m = MatMul(r, w)
            t = Transpose<perm=[1,0,2]>(m)
            y = Relu(t)
        }"""
    )
    assert found["t"] == ("B", "S", 24)


def test_expand_and_constant_of_shape_take_lengths() -> None:
    found = learned(
        """g (float[B,S] x, float[1,4] c) => (float[P,Q] y, float[T,U] z)
           <int64[1] zero = {0}, int64[1] four = {4}> {
            shape = Shape(x)
            b = Gather<axis=0>(shape, zero)
            target = Concat<axis=0>(b, four)
            e = Expand(c, target)
            y = Relu(e)
            f = ConstantOfShape(shape)
            z = Relu(f)
        }"""
    )
    assert found["e"] == ("B", 4)
    assert found["f"] == ("B", "S")


def test_a_constant_condition_chooses_the_shape_of_a_branch() -> None:
    found = learned(
        """g (float[B,1,4] x) => (float[P,Q] y) <bool c = {1}> {
            i = If (c) <
                then_branch = then () => (float[B,4] t) <int64[1] a = {1}> { t = Squeeze(x, a) },
                else_branch = else () => (float[B,1,4] e) { e = Identity(x) }
            >
            y = Relu(i)
        }"""
    )
    assert found["i"] is not None
    assert found["i"][1:] == (4,)


@pytest.mark.parametrize(
    "size",
    [
        Size(7),
        Size(1, (("named", "N"),)),
        Size(8, (("named", "N"),)),
        Size(1, (("named", "N"), ("named", "unk__3"))),
    ],
)
def test_the_name_of_a_product_means_the_product(size: Size) -> None:
    name = length_of(size)
    assert name is not None
    assert size_of(name) == size


def test_a_symbol_without_a_name_gives_none() -> None:
    assert length_of(Size(2, (("result", "0"),))) is None


def test_every_name_of_the_model_is_a_symbol() -> None:
    assert size_of("2·N") == Size(1, (("named", "2·N"),))
    assert length_of(Size(3, (("named", "2·N"),))) is None


POSITIONS = """g (int64[B,S] ids, float[9,4] words) => (float[P,Q,R] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1,8] places = {0,1,2,3,4,5,6,7}> {
    shape = Shape(ids)
    s = Gather<axis=0>(shape, one)
    cut = Slice(places, START, s, one)
    w = Gather(words, ids)
    p = Gather(words, cut)
    sum = Add(w, p)
    y = Relu(sum)
}"""


def test_what_is_cut_to_a_length_has_it_beside_that_length() -> None:
    found = learned(POSITIONS.replace("START", "zero"))
    assert found["sum"] == ("B", "S", 4)
    assert found["cut"] is not None
    assert found["cut"][0] == 1
    assert is_invented(found["cut"][1])


def test_an_end_kept_below_a_constant_is_at_most_the_length() -> None:
    found = learned(
        """g (int64[B,S] ids, float[9,4] words) => (float[P,Q,R] y)
           <int64[2] start = {0, 0}, int64[2] both = {0, 1}, float[2] most = {9, 8},
            int64[1,8] places = {0,1,2,3,4,5,6,7}> {
            shape = Shape(ids)
            f = Cast<to=1>(shape)
            least = Min(f, most)
            end = Cast<to=7>(least)
            cut = Slice(places, start, end, both)
            e = Expand(cut, shape)
            p = Gather(words, e)
            y = Relu(p)
        }"""
    )
    assert found["p"] == ("B", "S", 4)


def test_what_is_cut_from_elsewhere_may_have_any_length() -> None:
    found = learned(POSITIONS.replace("START", "one"))
    assert found["sum"] is not None
    assert is_invented(found["sum"][1])


def test_bounds_that_are_attributes_are_left_to_inference() -> None:
    found = learned(
        """g (float[B,8] x) => (float[P,Q] y) {
            cut = Slice<axes=[0], starts=[0], ends=[3]>(x)
            y = Relu(cut)
        }""",
        opset=9,
    )
    assert found["cut"] is not None
    assert found["cut"][1] == 8


def test_the_idiom_that_expands_to_a_shape_with_holes() -> None:
    found = learned(
        """g (float[B,S] x, bool[1,1] m) => (bool[P,Q] y, int64[R] z)
           <int64[2] minus = {-1, -1}, int64[2] ones = {1, 1}, int64 at = {1},
            int64 start = {0}, int64 step = {1}> {
            shape = Shape(x)
            holes = Equal(shape, minus)
            target = Where(holes, ones, shape)
            e = Expand(m, target)
            y = Not(e)
            s = Gather<axis=0>(shape, at)
            r = Range(start, s, step)
            z = Neg(r)
        }"""
    )
    assert found["e"] == ("B", "S")
    assert found["r"] == ("S",)
