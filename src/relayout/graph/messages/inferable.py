"""Nodes in the form in which onnx's inference reads them rightly."""

from __future__ import annotations

import onnx


def make_inferable(node: onnx.NodeProto) -> None:
    """State a node so that inference finds its shape; it means the same."""
    if node.op_type == "Squeeze":
        _sort_axes(node)
    elif node.op_type == "STFT":
        _state_sides(node)


def is_inferable(node: onnx.NodeProto) -> bool:
    """Whether inference reads a node rightly as it stands."""
    if node.op_type not in {"Squeeze", "STFT"}:
        return True
    restated = onnx.NodeProto()
    restated.CopyFrom(node)
    make_inferable(restated)
    return bool(restated == node)


def _sort_axes(node: onnx.NodeProto) -> None:
    """In ascending order: before opset 11 inference passes over axes that follow a larger one."""
    for attribute in node.attribute:
        if attribute.name == "axes" and not attribute.ref_attr_name:
            attribute.ints[:] = sorted(attribute.ints)


def _state_sides(node: onnx.NodeProto) -> None:
    """By default a spectrum has one side; inference takes it for two."""
    if all(attribute.name != "onesided" for attribute in node.attribute):
        node.attribute.append(onnx.helper.make_attribute("onesided", 1))
