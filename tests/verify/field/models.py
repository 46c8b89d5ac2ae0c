"""Models in ONNX text for the tests of the field."""

from __future__ import annotations

import onnx

from relayout.verify.field.run import field_run
from relayout.verify.field.verdict import FieldVerdict

HEAD = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1, "local" : 1, "strange" : 1]>'


def model(text: str) -> onnx.ModelProto:
    """A model by its graph, in ONNX text without a head."""
    return onnx.parser.parse_model(f"{HEAD} {text}")


def verdict_on(before: str, after: str, seed: int = 0, **binding: int) -> FieldVerdict:
    return field_run(model(before), model(after), binding=binding, seed=seed)


def status_of(before: str, after: str, seed: int = 0, **binding: int) -> str:
    return verdict_on(before, after, seed, **binding).status
