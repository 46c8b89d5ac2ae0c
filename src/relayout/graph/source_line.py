"""The line of a user's program that a node was exported from, where the exporter recorded it."""

from __future__ import annotations

import re

import onnx_ir as ir

STACK_KEY = "pkg.torch.onnx.stack_trace"

_PYTHON_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
"""As Python prints a stack: the innermost frame last."""
_SCRIPT_FRAME = re.compile(r"^(?P<file>[^\n]+\.py)\((?P<line>\d+)\)", re.MULTILINE)
"""As TorchScript prints a stack: the innermost frame first."""
_EXPORTER = re.compile(r"(^|-packages/)torch/")
"""The exporter's own files, whose lines are not the user's program."""


def source_line(node: ir.Node) -> str | None:
    """The innermost line outside the exporter's own code, as `file:line`."""
    for file, line in (*_traced(node), *_scripted(node)):
        path = file.replace("\\", "/")
        if not _EXPORTER.search(path):
            return f"{path}:{line}"
    return None


def _traced(node: ir.Node) -> list[tuple[str, str]]:
    return _PYTHON_FRAME.findall(node.metadata_props.get(STACK_KEY, ""))[::-1]


def _scripted(node: ir.Node) -> list[tuple[str, str]]:
    return _SCRIPT_FRAME.findall(node.doc_string or "")
