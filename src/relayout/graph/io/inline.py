"""Puts the nodes of functions that `outlined` made back where they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import onnx
import onnx.inliner

from relayout.errors import BadModelError
from relayout.graph.io.places import (
    INITIALIZERS,
    IR_VERSION,
    NODES,
    ORDER,
    PRIMITIVE,
    VALUE_INFO,
    places_of,
)
from relayout.graph.messages.functions import expanded_size
from relayout.graph.messages.scoping import check_scopes
from relayout.graph.messages.walk import Body, bodies_of, nested_bodies

NOT_AS_WRITTEN = "calls were changed after they were written, so inner values have new names"

MOST_NODES = 1_000_000
"""Functions that call functions may expand to more than a machine can hold."""

_Item = TypeVar("_Item")
_Functions: TypeAlias = Mapping[tuple[str, str], onnx.FunctionProto]
_Noted: TypeAlias = onnx.ModelProto | Body


class _ChangedError(Exception):
    """A model is not as `outlined` wrote it."""


def inlined(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    """A model without functions that are one kernel each, and notices.

    It is exactly the model that the functions were made of, unless they were changed since.
    """
    functions = {(f.domain, f.name): f for f in model.functions if PRIMITIVE in _notes(f)}
    if not functions:
        return model, []
    try:
        return _restored(model, functions), []
    except _ChangedError:
        return _expanded(model, functions), [NOT_AS_WRITTEN]


def without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with what its functions do in the place of their calls, for runtimes without them."""
    functions = {(function.domain, function.name): function for function in model.functions}
    return _expanded(model, functions) if functions else model


def _restored(model: onnx.ModelProto, functions: _Functions) -> onnx.ModelProto:
    result = onnx.ModelProto()
    result.CopyFrom(model)
    calls: Counter[tuple[str, str]] = Counter()
    # Inner bodies first: an edit copies the nodes of its body, and what is inside them.
    for body in reversed(list(bodies_of(result))):
        calls.update(_restore(body, functions))
    _demand(dict(calls) == dict.fromkeys(functions, 1))
    _forget(result, functions)
    _demand_true_copies(result, functions)
    version = _notes(result).get(IR_VERSION)
    if version is not None:
        _drop_note(result, IR_VERSION)
        result.ir_version = _number(version)
    _demand_order(result)
    return result


def _expanded(model: onnx.ModelProto, functions: _Functions) -> onnx.ModelProto:
    """The calls replaced by what they call, as onnx does it; inner values get new names."""
    size = expanded_size(model)
    if size > MOST_NODES:
        raise BadModelError(f"its groups call each other and expand to {size} nodes")
    result = onnx.inliner.inline_selected_functions(model, list(functions))
    _forget(result, functions)
    _drop_note(result, IR_VERSION)
    for body in bodies_of(result):
        _drop_note(body, ORDER)
    return result


def _forget(model: onnx.ModelProto, functions: _Functions) -> None:
    """Remove the functions, and imports of their domain that nothing needs any more."""
    for index, function in reversed(list(enumerate(model.functions))):
        if (function.domain, function.name) in functions:
            del model.functions[index]
    domains = {domain for domain, _name in functions}
    for holder, body in ((model, model.graph), *((f, f) for f in model.functions)):
        called = {node.domain for inner in nested_bodies(body) for node in inner.node}
        for index, entry in reversed(list(enumerate(holder.opset_import))):
            if entry.domain in domains - called:
                del holder.opset_import[index]


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a function is made of, each part with its place; a mere copy has none."""

    initializers: list[tuple[int | None, onnx.TensorProto]]
    nodes: list[tuple[int | None, onnx.NodeProto]]
    records: list[tuple[int | None, onnx.ValueInfoProto]]

    @classmethod
    def of(cls, function: onnx.FunctionProto) -> _Parts:
        places = _places(function, INITIALIZERS)
        tensors = [_tensor(node) for node in function.node[: len(places)]]
        return cls(
            _paired(places, tensors),
            _paired(_places(function, NODES), function.node[len(places) :]),
            _paired(_places(function, VALUE_INFO), function.value_info),
        )

    def copies(self) -> Iterator[tuple[str, bytes]]:
        """The names and messages of what is elsewhere too."""
        for place, tensor in self.initializers:
            if place is None:
                yield tensor.name, _bytes(tensor)
        for place, node in self.nodes:
            if place is None:
                yield from ((name, _bytes(node)) for name in node.output)


def _restore(body: Body, functions: _Functions) -> list[tuple[str, str]]:
    """Put back the nodes that the calls in a body replaced; which functions they called."""
    called: list[tuple[str, str]] = []
    nodes: dict[int, onnx.NodeProto] = {}
    records: dict[int, onnx.ValueInfoProto] = {}
    initializers: dict[int, onnx.TensorProto] = {}
    kept: list[onnx.NodeProto] = []
    for node in body.node:
        key = node.domain, node.op_type
        if key not in functions:
            kept.append(node)
            continue
        _demand(PRIMITIVE not in _notes(body))
        _demand_as_written(node, functions[key])
        parts = _Parts.of(functions[key])
        _put(initializers, parts.initializers)
        _put(nodes, parts.nodes)
        _put(records, parts.records)
        called.append(key)
    if called:
        _weave(body.node, kept, nodes, _places(body, ORDER))
        _drop_note(body, ORDER)
        _weave(body.value_info, list(body.value_info), records, [])
    if isinstance(body, onnx.GraphProto):
        _insert(body.initializer, initializers)
    return called


def _demand_true_copies(model: onnx.ModelProto, functions: _Functions) -> None:
    """What functions repeat must still be the same as what has this name elsewhere."""
    copies = {copy for function in functions.values() for copy in _Parts.of(function).copies()}
    names = {name for name, _ in copies}
    found = set()
    for body in bodies_of(model):
        found |= {(n, _bytes(node)) for node in body.node for n in node.output if n in names}
        if isinstance(body, onnx.GraphProto):
            found |= {(t.name, _bytes(t)) for t in body.initializer if t.name in names}
    _demand(copies <= found)


def _paired(places: Sequence[int | None], items: Sequence[_Item]) -> list[tuple[int | None, _Item]]:
    _demand(len(places) == len(items))
    return list(zip(places, items, strict=True))


def _put(target: dict[int, _Item], parts: Sequence[tuple[int | None, _Item]]) -> None:
    """Record where parts belong; those that are only copies have no place."""
    for place, item in parts:
        if place is not None:
            _demand(place not in target)
            target[place] = item


def _weave(
    field: MutableSequence[_Item],
    kept: Sequence[_Item],
    moved: Mapping[int, _Item],
    order: Sequence[int | None],
) -> None:
    """Let a field hold what it kept and what was moved, each in its place.

    What was kept fills the places left in its order, unless an order is given.
    """
    if not moved:
        return
    total = len(kept) + len(moved)
    free = order or [place for place in range(total) if place not in moved]
    _demand(len(free) == len(kept))
    items: dict[int | None, _Item] = dict(
        zip((*moved, *free), (*moved.values(), *kept), strict=True)
    )
    _demand(set(items) == set(range(total)))
    woven = [items[place] for place in range(total)]
    del field[:]
    field.extend(woven)


def _insert(field: MutableSequence[_Item], moved: Mapping[int, _Item]) -> None:
    """As `_weave`, without copying what was kept: initialisers may be large."""
    for place in sorted(moved):
        _demand(place <= len(field))
        field.insert(place, moved[place])


def _demand(holds: bool) -> None:
    if not holds:
        raise _ChangedError


def _demand_as_written(call: onnx.NodeProto, function: onnx.FunctionProto) -> None:
    _demand(list(call.input) == list(function.input))
    _demand(list(call.output) == list(function.output))
    _demand([a.ref_attr_name for a in call.attribute] == list(function.attribute))


def _demand_order(model: onnx.ModelProto) -> None:
    try:
        _demand(check_scopes(model).unsorted == 0)
    except BadModelError:
        raise _ChangedError from None


def _tensor(constant: onnx.NodeProto) -> onnx.TensorProto:
    _demand(constant.op_type == "Constant" and len(constant.attribute) == 1)
    tensor: onnx.TensorProto = constant.attribute[0].t
    return tensor


def _places(noted: _Noted, key: str) -> list[int | None]:
    try:
        return places_of(_notes(noted).get(key, ""))
    except ValueError:
        raise _ChangedError from None


def _bytes(message: onnx.TensorProto | onnx.NodeProto) -> bytes:
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def _number(text: str) -> int:
    _demand(text.isdecimal())
    return int(text)


def _notes(noted: _Noted) -> dict[str, str]:
    return {entry.key: entry.value for entry in noted.metadata_props}


def _drop_note(noted: _Noted, key: str) -> None:
    for index, entry in reversed(list(enumerate(noted.metadata_props))):
        if entry.key == key:
            del noted.metadata_props[index]
