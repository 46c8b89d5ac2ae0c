"""The exercise that the graph rules answer: its shapes and values, before and after optimising."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from relayout.api import optimize
from tests.rewrite.rewriting import parse


def shape(*lengths: int) -> str:
    return f"float[{','.join(map(str, lengths))}]"


def product(one: tuple[int, ...], two: tuple[int, ...], swapped: str, made: tuple[int, ...]) -> str:
    """MatMul with flags, as Transposes of the last two axes."""
    rank = len(one)
    perm = [*range(rank - 2), rank - 1, rank - 2]
    steps = "".join(f"{name}t = Transpose<perm={perm}>({name}) " for name in swapped)
    names = ", ".join(f"{name}t" if name in swapped else name for name in "ab")
    interface = f"({shape(*one)} a, {shape(*two)} b) => ({shape(*made)} y)"
    return f"g {interface} {{ {steps}y = MatMul({names}) }}"


CASES = {
    "product": product((1, 3, 5), (1, 5, 2), "", (1, 3, 2)),
    "first transposed": product((3, 5, 4), (3, 5, 2), "a", (3, 4, 2)),
    "batch": product((1, 2, 3, 5), (1, 1, 5, 2), "", (1, 2, 3, 2)),
    "batch, first transposed": product((2, 3, 5, 4), (1, 3, 5, 2), "a", (2, 3, 4, 2)),
    "batch, both transposed": product((2, 3, 5, 4), (1, 3, 2, 5), "ab", (2, 3, 4, 2)),
    "same order": "g (float[1,2,3,4] a) => (float[1,2,3,4] y) { y = Transpose<perm=[0,1,2,3]>(a) }",
    "inner axes": "g (float[1,2,3,4] a) => (float[1,3,2,4] y) { y = Transpose<perm=[0,2,1,3]>(a) }",
    "last axes": "g (float[2,3,4] a) => (float[2,4,3] y) { y = Transpose<perm=[0,2,1]>(a) }",
    "concat": """g (float[1,3,2,4] a, float[1,3,2,5] b) => (float[1,3,2,9] y) {
        y = Concat<axis=3>(a, b)
    }""",
    "clip": "g (float[1,2,2,3] a, float b, float c) => (float[1,2,2,3] y) { y = Clip(a, b, c) }",
    "cast": "g (float[2] a) => (float16[2] y) { y = Cast<to=10>(a) }",
    "equal": "g (float[2,3,3,4] a, float[2,3,3,4] b) => (float[2,3,3,4] y) { y = Add(a, b) }",
}
BROADCASTS = [
    ((2, 3, 4, 5), ()),
    ((2, 3, 4, 5), (5,)),
    ((4, 5), (2, 3, 4, 5)),
    ((1, 4, 5), (2, 3, 1, 1)),
    ((3, 4, 5), (2, 1, 1, 1)),
]
CASES |= {
    f"broadcast {one} {two}": f"g ({shape(*one)} a, {shape(*two)} b) => (float[2,3,4,5] y) "
    "{ y = Add(a, b) }".replace("float[]", "float")
    for one, two in BROADCASTS
}


def run(model: onnx.ModelProto, feeds: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    (found,) = ReferenceEvaluator(model).run(None, feeds)
    return np.asarray(found)


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_shapes_and_numbers(text: str) -> None:
    given = parse(text.replace("float[]", "float"))
    onnx.checker.check_model(given, full_check=True)
    random = np.random.default_rng(3)
    feeds = {
        value.name: np.asarray(
            random.standard_normal([dim.dim_value for dim in value.type.tensor_type.shape.dim]),
            np.float32,
        )
        for value in given.graph.input
    }
    expected = run(given, feeds)
    declared = given.graph.output[0].type.tensor_type
    assert list(expected.shape) == [dim.dim_value for dim in declared.shape.dim]
    assert expected.dtype == onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type)
    found = run(optimize(given, minimize="count", verify=False).model, feeds)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def counted(*lengths: int) -> NDArray[np.float32]:
    return np.arange(np.prod(lengths), dtype=np.float32).reshape(lengths)


MOVED = [0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23]
JOINED = [0, 1, 2, 1, 1, 1, 3, 4, 5, 1, 1, 1, 6, 7, 8, 1, 1, 1, 9, 10, 11, 1, 1, 1]
OPERANDS = {"a": counted(1, 2, 2, 3, 1), "b": counted(2, 1, 1)}
POINTWISE = "g (float[1,2,2,3,1] a, float[2,1,1] b) => (float[1,2,2,3,1] y) { y = OP(a, b) }"


@pytest.mark.parametrize(
    ("text", "feeds", "values"),
    [
        (CASES["inner axes"], {"a": counted(1, 2, 3, 4)}, MOVED),
        (
            """g (float[2,2,3,1] a, float[2,2,1,1] b, float[2,2,2,1] c) => (float[2,2,6,1] y) {
                y = Concat<axis=2>(a, b, c)
            }""",
            {"a": counted(2, 2, 3, 1), "b": np.ones((2, 2, 1, 1)), "c": np.ones((2, 2, 2, 1))},
            JOINED,
        ),
        (POINTWISE.replace("OP", "Add"), OPERANDS, [0, 1, 2, 4, 5, 6, 6, 7, 8, 10, 11, 12]),
        (POINTWISE.replace("OP", "Mul"), OPERANDS, [0, 0, 0, 3, 4, 5, 0, 0, 0, 9, 10, 11]),
        (POINTWISE.replace("OP", "Sub"), OPERANDS, [0, 1, 2, 2, 3, 4, 6, 7, 8, 8, 9, 10]),
        (POINTWISE.replace("OP", "Div"), {**OPERANDS, "b": np.ones((2, 1, 1))}, list(range(12))),
    ],
    ids=["transpose", "concat", "add", "mul", "sub", "div"],
)
def test_values(text: str, feeds: dict[str, NDArray[np.float32]], values: list[int]) -> None:
    given = parse(text)
    exact = {name: np.asarray(array, np.float32) for name, array in feeds.items()}
    for model in (given, optimize(given, verify=False).model):
        assert run(model, exact).ravel().tolist() == values
