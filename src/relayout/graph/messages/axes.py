"""Axes that nodes list, in the only order that onnx's inference reads them rightly in."""

from __future__ import annotations

import onnx


def sort_axes(node: onnx.NodeProto) -> None:
    """Let a Squeeze list its axes in ascending order, which gives the same result.

    Before opset 11 onnx's inference passes over axes that stand after a larger one.
    """
    if node.op_type != "Squeeze":
        return
    for attribute in node.attribute:
        if attribute.name == "axes" and not attribute.ref_attr_name:
            attribute.ints[:] = sorted(attribute.ints)
