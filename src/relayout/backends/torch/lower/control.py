"""Control flow: bodies are functions inside the function that runs them."""

from __future__ import annotations

import onnx_ir as ir

from relayout.backends.torch.program.call import Call, Lowering, Results, Several
from relayout.backends.torch.program.scalars import Host, Scalar
from relayout.backends.torch.runtime import control as runtime

NUMBER = Host((Scalar("i"),), 0, ir.DataType.INT64)
FLAG = Host((Scalar("c"),), 0, ir.DataType.BOOL)


def if_(call: Call) -> Several:
    chosen = call.known(0)
    if chosen is not None:
        branch = call.graph("then_branch" if chosen[0] else "else_branch")
        return Several(f"{call.scope.define('branch', branch)}()", call.results)
    first = call.scope.define("then_branch", call.graph("then_branch"))
    second = call.scope.define("else_branch", call.graph("else_branch"))
    return Several(f"({first} if {call.number_text(0)} else {second})()", call.results)


def loop(call: Call) -> Results:
    graph = call.graph("body")
    body = call.scope.define("body", graph, (NUMBER, FLAG))
    count = call.number_text(0) if call.has(0) else "None"
    condition = call.number_text(1) if call.has(1) else "True"
    carried = [call.tensor(index) for index in range(2, call.arity)]
    given = f"[{', '.join(carried)}]"
    empty = [_empty(call, value) for value in graph.outputs[1 + len(carried) :]]
    text = call.helper(runtime.loop, body, count, condition, given, f"[{', '.join(empty)}]")
    return Several(text, call.results)


def _empty(call: Call, value: ir.Value) -> str:
    """What a loop that never runs has collected."""
    shape = [dim if isinstance(dim, int) else 0 for dim in value.shape or ()]
    dtype = call.torch_dtype(value.dtype or ir.DataType.FLOAT)
    return f"torch.empty({[0, *shape]}, dtype={dtype}, device=w.device)"


def scan(call: Call) -> Several:
    if call.version < 9:
        return _scan_of_batch(call)
    graph, count = call.graph("body"), call.integer("num_scan_inputs", 0)
    states = call.arity - count
    body = call.scope.define("body", graph)
    options = [
        list(call.ints(name) or (0,) * length)
        for name, length in (
            ("scan_input_axes", count),
            ("scan_input_directions", count),
            ("scan_output_axes", call.results - states),
            ("scan_output_directions", call.results - states),
        )
    ]
    first, rest = call.tensors[:states], call.tensors[states:]
    given = (f"[{', '.join(first)}]", f"[{', '.join(rest)}]")
    return Several(call.helper(runtime.scan, body, *given, *options), call.results)


def _scan_of_batch(call: Call) -> Several:
    """Up to opset 8 all operands have a batch, and the first one is how long its entries are."""
    if call.has(0):
        raise call.refusal("has entries of different lengths, as up to opset 8")
    count = call.integer("num_scan_inputs", 0)
    states = call.arity - 1 - count
    body = call.scope.define("body", call.graph("body"))
    operands = [call.tensor(index) for index in range(1, call.arity)]
    given = (f"[{', '.join(operands[:states])}]", f"[{', '.join(operands[states:])}]")
    directions = list(call.ints("directions") or (0,) * count)
    text = call.helper(runtime.scan_each, body, *given, directions, call.results - states)
    return Several(text, call.results)


LOWERINGS: dict[str, Lowering] = {"If": if_, "Loop": loop, "Scan": scan}
