"""Types and shapes of all values, inferred from the interface and never from stale records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import onnx

from relayout.errors import BadModelError, quoted
from relayout.graph.messages.inferable import make_inferable
from relayout.graph.messages.perms import check_perms
from relayout.graph.messages.skeleton import FIRST_WITH_DEFAULTS
from relayout.graph.messages.walk import bodies_of, nested_bodies
from relayout.graph.shapes.carried import infer_carried
from relayout.graph.shapes.claims import (
    clear_impossible,
    contradict,
    is_informative,
    without_lengths,
)
from relayout.graph.shapes.old_slices import as_given, may_be_untrue, with_true_slices
from relayout.graph.shapes.propagation import MOST_ENTRIES, most_entries
from relayout.graph.shapes.ranks import derived_shapes

MOST_EXPANDED_NODES = 100_000
"""Inference expands functions; above this size they are left out of it."""

_DERIVATIONS = 8
"""How often inference may go on from a derived shape to the next one."""

_Graphs: TypeAlias = list[onnx.GraphProto]
"""The main graph, then the bodies of control flow."""


def infer(
    skeleton: onnx.ModelProto, given: onnx.ModelProto, expanded_size: int
) -> tuple[onnx.ModelProto, list[str]]:
    """A model with the type and shape of every value that can be known, and notices.

    What `given` records of outputs, inner values and operands of bodies serves as `claims` allows,
    and only for values that inference leaves open. What a body declares about its outputs counts
    unless inference contradicts it, because onnx infers little about a body whose outputs have no
    types. A Transpose that contradicts what is inferred is refused.
    """
    notices: list[str] = []
    functions = list(skeleton.functions)
    if expanded_size > MOST_EXPANDED_NODES:
        del skeleton.functions[:]
        notices.append(
            f"calls of functions have unknown shapes: the functions expand to {expanded_size} nodes"
        )
    # Older versions make inference skip initialisers that are not inputs, which runtimes accept.
    skeleton.ir_version = max(skeleton.ir_version, FIRST_WITH_DEFAULTS)
    bare = list(_graphs(skeleton))
    for graph in bare:
        _forget_claims(graph, is_body=graph is not bare[0])
    result = _run(skeleton, notices)
    # Records may be stale, so a rank that is known from them would contradict nothing.
    check_perms(result.graph, functions)
    recorded = _graphs_as(given, bare)
    if _declare_bodies(bare, _graphs_as(result, bare), recorded):
        result = _run(skeleton, notices)
    result = _followed(skeleton, result, notices)
    inferred, asked = _graphs_as(result, bare), 0
    for ask in _ROUNDS if any(map(_unknown, inferred)) else ():
        if _add_hints(bare, inferred, recorded, ask):
            result = _run(skeleton, notices)
            inferred = _graphs_as(result, bare)
            asked += 1
    if asked:
        result = _followed(skeleton, result, notices)
        inferred = _graphs_as(result, bare)
    result.ir_version = given.ir_version
    if not result.functions:
        result.functions.extend(functions)
    for graph in inferred:
        _settle_outputs(graph)
    _settle_interface(result.graph, given.graph, notices)
    return result, list(dict.fromkeys(notices))


def infer_further(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with what can be inferred from its inputs, as far as that goes."""
    for body in bodies_of(model):
        for node in body.node:
            make_inferable(node)
    notices: list[str] = []
    return _derived(model, _run(model, notices), notices)


def _followed(
    model: onnx.ModelProto, result: onnx.ModelProto, notices: list[str]
) -> onnx.ModelProto:
    """What follows by induction over the rounds of loops, and from shapes that can be derived."""

    def infer_anew() -> onnx.ModelProto:
        # What is derived from an assumption may not outlive it.
        trial = onnx.ModelProto()
        trial.CopyFrom(model)
        return _derived(trial, _run(trial, notices), notices)

    return _derived(model, infer_carried(model, result, infer_anew), notices)


def _derived(
    model: onnx.ModelProto, result: onnx.ModelProto, notices: list[str]
) -> onnx.ModelProto:
    """What follows from shapes that onnx's inference leaves open though they can be derived."""
    bare = list(_graphs(model))
    for _ in range(_DERIVATIONS):
        if not _add_derived(bare, _graphs_as(result, bare)):
            break
        result = _run(model, notices)
    return result


def _forget_claims(graph: onnx.GraphProto, *, is_body: bool) -> None:
    for value in graph.output:
        value.ClearField("type")
    for value in graph.input:
        if is_body:
            value.type.CopyFrom(without_lengths(value.type))
        clear_impossible(value.type)


_FAILURES = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    ValueError,
)


def _run(model: onnx.ModelProto, notices: list[str]) -> onnx.ModelProto:
    result = _by_onnx(model, notices)
    if not may_be_untrue(result):
        return result
    return as_given(_by_onnx(with_true_slices(model), notices), model)


def _by_onnx(model: onnx.ModelProto, notices: list[str]) -> onnx.ModelProto:
    entries = most_entries(model)
    try:
        if entries <= MOST_ENTRIES:
            return onnx.shape_inference.infer_shapes(model, data_prop=True)
        notices.append(
            f"lengths that are computed are not followed: that could take {entries} entries,"
            f" more than {MOST_ENTRIES}"
        )
    except _FAILURES:
        pass
    try:
        return onnx.shape_inference.infer_shapes(model)
    except _FAILURES as error:
        reason = " ".join(str(error).split())[:200]
        notices.append(f"shape inference failed, so most shapes are unknown: {reason}")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _declare_bodies(bare: _Graphs, inferred: _Graphs, given: _Graphs) -> bool:
    """Let the bodies of control flow declare their outputs; whether there are any."""
    nested = [zip(*graphs, strict=True) for graphs in _outputs(bare, inferred, given)[1:]]
    return sum(_declare(target, *others) for body in nested for target, *others in body) > 0


def _add_hints(bare: _Graphs, inferred: _Graphs, given: _Graphs, ask: _Question) -> bool:
    """Copy what `given` records of the values that `ask` names to `bare`; whether there was any."""
    added, asked = 0, [ask(known) for known in inferred]
    for target, askable, recorded in zip(bare, asked, given, strict=True):
        hints = {
            value.name: onnx.helper.make_value_info(value.name, without_lengths(value.type))
            for value in recorded.value_info
            if value.name in askable and is_informative(value.type)
        }
        target.value_info.extend(hints.values())
        added += len(hints)
    for target, known, declared in zip(*_outputs(bare, inferred, given)[0], strict=True):
        if declared.name in asked[0]:
            added += _declare(target, known, declared)
    return added > 0


def _outputs(*models: _Graphs) -> list[list[Sequence[onnx.ValueInfoProto]]]:
    """For each graph its outputs in each of several forms of the model."""
    return [[graph.output for graph in graphs] for graphs in zip(*models, strict=True)]


def _declare(
    target: onnx.ValueInfoProto, known: onnx.ValueInfoProto, declared: onnx.ValueInfoProto
) -> bool:
    """Let an output have its declared type, if that may be true; whether it has it now."""
    if is_informative(target.type) or not is_informative(declared.type):
        return False
    if contradict(declared.type, known.type):
        return False
    target.type.CopyFrom(without_lengths(declared.type))
    return True


def _add_derived(bare: _Graphs, inferred: _Graphs) -> bool:
    """Add to `bare` what can be derived beyond onnx's inference; whether there was any."""
    added = False
    for target, known in zip(bare, inferred, strict=True):
        recorded = {value.name for value in target.value_info}
        more = [value for value in derived_shapes(known) if value.name not in recorded]
        target.value_info.extend(more)
        added = added or bool(more)
    return added


def _graphs_as(model: onnx.ModelProto, other: _Graphs) -> _Graphs:
    """The graphs of a model that differs from one with these graphs in what is recorded only."""
    return list(_graphs(model)) if len(other) > 1 else [model.graph]


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    for body in nested_bodies(model.graph):
        if isinstance(body, onnx.GraphProto):
            yield body


def _unknown(graph: onnx.GraphProto) -> set[str]:
    """The names of results whose rank, or whose type at all, is not known."""
    known = {
        value.name for value in chain(graph.value_info, graph.output) if is_informative(value.type)
    }
    produced = {name for node in graph.node for name in node.output if name}
    return produced - known


def _first_unknown(graph: onnx.GraphProto) -> set[str]:
    """The unknown results of nodes that no further inference could find.

    Either onnx does not know the operator, or all operands are known and it did not help. What
    depends on such results is left to the next run of inference.
    """
    unknown = _unknown(graph)
    asked = [
        node.output
        for node in (graph.node if unknown else ())
        if unknown.isdisjoint(node.input) or not onnx.defs.has(node.op_type, node.domain)
    ]
    return unknown.intersection(chain.from_iterable(asked))


_Question: TypeAlias = Callable[[onnx.GraphProto], set[str]]
_ROUNDS: tuple[_Question, ...] = (_first_unknown, _first_unknown, _first_unknown, _unknown)
"""Which records inference is given before it runs again, if there are any."""


def _settle_outputs(graph: onnx.GraphProto) -> None:
    """Outputs for which nothing is inferred take the record that served as a hint."""
    recorded = {value.name: value.type for value in graph.value_info}
    for output in graph.output:
        if not is_informative(output.type) and output.name in recorded:
            output.type.CopyFrom(recorded[output.name])


def _settle_interface(result: onnx.GraphProto, given: onnx.GraphProto, notices: list[str]) -> None:
    """Report declared outputs that cannot be true; what nothing is inferred of keeps its claim."""
    inputs = {value.name: value.type for value in result.input}
    for output, declared in zip(result.output, given.output, strict=True):
        if declared.name in inputs:
            output.type.CopyFrom(inputs[declared.name])
        if not is_informative(declared.type):
            continue
        _check_element(declared.name, declared.type, output.type)
        if contradict(declared.type, output.type):
            notices.append(f"output {quoted(declared.name)} declares a shape it cannot have")
        elif not is_informative(output.type):
            output.type.CopyFrom(without_lengths(declared.type))


def _check_element(name: str, declared: onnx.TypeProto, inferred: onnx.TypeProto) -> None:
    """Refuse an output of another element type than it is computed in, as runtimes do."""
    wanted, found = (_element(each) for each in (declared, inferred))
    if wanted and found and wanted != found:
        raise BadModelError(f"output {quoted(name)} is declared as {wanted}, but is {found}")


def _element(declared: onnx.TypeProto) -> str | None:
    """The name of an element type; None where there is none that is known."""
    names = onnx.TensorProto.DataType
    kind = declared.tensor_type.elem_type
    return names.Name(kind) if kind and kind in names.values() else None
