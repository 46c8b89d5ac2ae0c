"""The body of a normalisation by groups of channels, in operators that common runtimes have.

The standard operator is itself a function that depends on the types of its operands, and not every
runtime runs such a function inside another one.
"""

from __future__ import annotations

import onnx
from onnx import helper

from relayout.layout.permutation import Permutation

INT, FLOAT = onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT


def group_normalization(channels_last: Permutation) -> list[onnx.NodeProto]:
    """From X, scale and bias to Y: each group is normalised as one channel of an instance."""
    first, last = channels_last.inverse().axes, channels_last.axes
    normal = helper.make_node("InstanceNormalization", ["grouped", "ones", "zeros"], ["normal"])
    return [
        helper.make_node("Transpose", ["X"], ["X_first"], perm=first),
        _stashed("X_first", "x"),
        _bound(helper.make_node("Constant", [], ["count"]), "value_int", "num_groups", INT),
        *(helper.make_node("Constant", [], [n], value_ints=[v]) for n, v in VECTORS.items()),
        helper.make_node("Reshape", ["count", "one"], ["groups"]),
        helper.make_node("Concat", ["same", "groups", "rest"], ["grouped_shape"], axis=0),
        helper.make_node("Reshape", ["x", "grouped_shape"], ["grouped"]),
        *_filled("ones", 1.0),
        *_filled("zeros", 0.0),
        _bound(normal, "epsilon", "epsilon", FLOAT),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Reshape", ["normal", "shape"], ["whole"]),
        helper.make_node("Transpose", ["whole"], ["whole_last"], perm=last),
        _stashed("scale", "scale_x"),
        _stashed("bias", "bias_x"),
        helper.make_node("Mul", ["whole_last", "scale_x"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias_x"], ["shifted"]),
        helper.make_node("CastLike", ["shifted", "X"], ["Y"]),
    ]


VECTORS = {"one": 1, "same": 0, "rest": -1}


def _filled(name: str, value: float) -> list[onnx.NodeProto]:
    """A vector with one entry per group."""
    return [
        helper.make_node("Constant", [], [f"{name}_float"], value_float=value),
        helper.make_node("CastLike", [f"{name}_float", "x"], [f"{name}_each"]),
        helper.make_node("Expand", [f"{name}_each", "groups"], [name]),
    ]


def _stashed(value: str, result: str) -> onnx.NodeProto:
    """A value in the type that statistics are taken in."""
    return _bound(helper.make_node("Cast", [value], [result]), "to", "stash_type", INT)


def _bound(node: onnx.NodeProto, name: str, given: str, kind: int) -> onnx.NodeProto:
    """A node with an attribute that the caller of the function gives."""
    node.attribute.add(name=name, ref_attr_name=given, type=kind)
    return node
