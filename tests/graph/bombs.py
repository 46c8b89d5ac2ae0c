"""Small files that ask for much: more memory, or more nodes, than any machine has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.graph.makers import doubling_functions, model, nested_ifs, node, value

HUGE = 2**18
"""Two axes of this length hold 2 to the power of 36 elements."""


def _bomb(*nodes: onnx.NodeProto, **constants: object) -> onnx.ModelProto:
    """What nodes make of constants is summed up, beside a pair of Transposes to take out."""
    pair = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "b", perm=[1, 0])]
    ends = [node("ReduceMax", "big", "most", keepdims=0), node("Add", "b most", "y")]
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    return model([*pair, *nodes, *ends], initializers=tensors)


def expand() -> onnx.ModelProto:
    return _bomb(node("Expand", "one shape", "big"), one=np.float32(1), shape=[HUGE, HUGE])


def constant_of_shape() -> onnx.ModelProto:
    return _bomb(node("ConstantOfShape", "shape", "big"), shape=[HUGE, HUGE])


def tile() -> onnx.ModelProto:
    one = np.ones((1, 1), np.float32)
    return _bomb(node("Tile", "one times", "big"), one=one, times=[HUGE, HUGE])


def count() -> onnx.ModelProto:
    """A Range as long as the others are large."""
    first, last, step = (np.float32(number) for number in (0, 2.0**36, 1))
    return _bomb(node("Range", "first last step", "big"), first=first, last=last, step=step)


def pad() -> onnx.ModelProto:
    one = np.ones((1, 1), np.float32)
    return _bomb(node("Pad", "one widths", "big"), one=one, widths=[0, 0, HUGE, HUGE])


def resize() -> onnx.ModelProto:
    one = np.ones((1, 1, 1, 1), np.float32)
    sizes = [1, 1, HUGE, HUGE]
    given = helper.make_node("Resize", ["one", "", "", "sizes"], ["big"], mode="nearest")
    return _bomb(given, one=one, sizes=sizes)


def one_hot() -> onnx.ModelProto:
    values, depth = np.asarray([0, 1], np.float32), np.int64(2**36)
    one = np.zeros(1, np.int64)
    return _bomb(node("OneHot", "one depth values", "big"), one=one, depth=depth, values=values)


def eye_like() -> onnx.ModelProto:
    shaped = node("ConstantOfShape", "shape", "zeros")
    return _bomb(shaped, node("EyeLike", "zeros", "big", dtype=1), shape=[HUGE, HUGE])


def outer_product() -> onnx.ModelProto:
    row = node("ConstantOfShape", "shape", "row")
    return _bomb(
        row,
        node("Transpose", "row", "column", perm=[1, 0]),
        node("MatMul", "column row", "big"),
        shape=[1, HUGE],
    )


def repeated_concat() -> onnx.ModelProto:
    """Each Concat doubles what the one before it made."""
    doubled = [node("Concat", f"d{i} d{i}", f"d{i + 1}", axis=0) for i in range(36)]
    last = node("Identity", "d36", "big")
    return _bomb(*doubled, last, d0=np.ones(1, np.float32))


def given_shape() -> onnx.ModelProto:
    """An input that declares a size which no caller has."""
    pair = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "b", perm=[1, 0])]
    return model([*pair, node("Relu", "b", "y")], inputs=[value("x", [HUGE, HUGE])])


def many_expands(count: int, length: int = 32) -> onnx.ModelProto:
    """Many constants of the same modest size, beside a pair of Transposes."""
    pair = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "p0", perm=[1, 0])]
    numbers = range(count)
    expands = [node("Expand", f"c{i} shape", f"e{i}") for i in numbers]
    adds = [node("Add", f"p{i} e{i}", f"p{i + 1}") for i in numbers]
    constants = [numpy_helper.from_array(np.asarray(i, np.float32), f"c{i}") for i in numbers]
    return model(
        [*pair, *expands, *adds, node("Relu", f"p{count}", "y")],
        inputs=[value("x", [length, length])],
        initializers=[*constants, numpy_helper.from_array(np.asarray([length] * 2), "shape")],
    )


DATA_BOMBS: tuple[Callable[[], onnx.ModelProto], ...] = (
    *(expand, constant_of_shape, tile, count, pad, resize, one_hot, eye_like),
    *(outer_product, repeated_concat, given_shape),
)

NODE_BOMBS: dict[str, Callable[[], onnx.ModelProto]] = {
    "functions_12": lambda: doubling_functions(12),
    "functions_16": lambda: doubling_functions(16),
    "functions_30": lambda: doubling_functions(30),
    "ifs_31": lambda: nested_ifs(31),
}
