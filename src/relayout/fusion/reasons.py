"""The reasons of refusals in words, where kernels rather than kinds decide."""

from __future__ import annotations

import onnx_ir as ir

from relayout.fusion.codes import Code, Why
from relayout.fusion.common_loop import ROW_BYTES
from relayout.fusion.groups import Limits
from relayout.fusion.merging import MOST_READERS
from relayout.fusion.naming import named, opaque_reason, stop_reason
from relayout.fusion.sketch import Sketch


def reason_of(
    why: Why, sketch: Sketch, producer: ir.Node, consumer: ir.Node, limits: Limits
) -> tuple[Code, str]:
    at = named(producer if why.at is None else sketch.operators[why.at].node)
    if why.code is Code.OPAQUE:
        node = consumer if why.at is None else sketch.operators[why.at].node
        return opaque_reason(node, sketch.translation.fusings[node])
    words = {
        Code.ARGUMENTS: _most_arguments(limits),
        Code.BETWEEN: f"{at} has more elements than the loop it would run in",
        Code.CAPABILITY: f"the target has no kernel that can include {at}",
        Code.COMPLEX_PROLOGUE: f"{at} would be computed for each time that its result is read",
        Code.CYCLE: f"something else lies between {named(producer)} and {named(consumer)}",
        Code.DEPTH: f"more than {limits.max_depth} operators would share a kernel",
        Code.NO_GAIN: f"{named(consumer)} would move no fewer bytes with {named(producer)}",
        Code.PATH: f"{at} reads elements at other places than the one being computed",
        Code.READERS: f"more than {MOST_READERS} kernels read what {named(producer)} makes",
        Code.REPEAT: f"costly work before {named(consumer)} would be repeated",
        Code.RESULTS: f"{at} is also read elsewhere, and no loop writes both results",
        Code.STOP: stop_reason(producer),
        Code.ROW: f"{at} needs rows that are not those of the kernel, or over {ROW_BYTES} bytes",
        Code.TWO_ANCHORS: f"{at} is a second complex operator",
    }
    return why.code, words[why.code]


def _most_arguments(limits: Limits) -> str:
    if not limits.max_args:
        return "the kernel would take more arguments than devices allow"
    return f"the kernel would take more than {limits.max_args} arguments"
