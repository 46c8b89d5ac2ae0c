"""Names that occur twice: kept apart while a model is worked on, and written back as they came.

A body of control flow may define a name that its surroundings, or another body, define too, and
means its own. A constant may be written twice in one graph: runtimes take the last one. Inside
relayout every name of a graph and its bodies has one definition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, MutableSequence
from dataclasses import dataclass, field

import onnx

from relayout.errors import quoted
from relayout.graph.messages.walk import Body, nested_bodies, subgraphs_of


@dataclass(slots=True)
class Apart:
    """A model in which every name has one definition."""

    model: onnx.ModelProto
    given: dict[str, str] = field(default_factory=dict)
    """By the names that are new, those that were given."""
    notices: list[str] = field(default_factory=list)


def kept_apart(model: onnx.ModelProto) -> Apart:
    """The model itself where every name has one definition already, else a copy.

    A name keeps its first definition, outer ones first; functions have names of their own.
    """
    roots: list[Body] = [model.graph, *model.functions]
    if not any(_repeats(root) for root in roots):
        return Apart(model)
    found = Apart(onnx.ModelProto())
    found.model.CopyFrom(model)
    for root in (found.model.graph, *found.model.functions):
        for body in nested_bodies(root):
            if isinstance(body, onnx.GraphProto):
                found.notices += _without_overwritten(body)
        _Parting(found.given, set(_all_names(root))).part(root, {})
    return found


def restore_names(model: onnx.ModelProto, given: Mapping[str, str]) -> None:
    """Give definitions the names they came with, where no other value is meant by them there."""
    if given:
        for root in (model.graph, *model.functions):
            _Restoring(given).restore(root, {}, frozenset())


def _repeats(root: Body) -> bool:
    seen: set[str] = set()
    for body in nested_bodies(root):
        for name in _definitions(body):
            if name in seen:
                return True
            seen.add(name)
    return False


def _definitions(body: Body) -> Iterator[str]:
    """Every definition of a name, initialisers that are defaults of inputs only once."""
    inputs = dict.fromkeys(_input_names(body))
    yield from filter(None, _input_names(body))
    yield from (name for name in _initializer_names(body) if name and name not in inputs)
    for node in body.node:
        yield from filter(None, node.output)


def _input_names(body: Body) -> list[str]:
    if isinstance(body, onnx.FunctionProto):
        return list(body.input)
    return [value.name for value in body.input]


def _initializer_names(body: Body) -> list[str]:
    if isinstance(body, onnx.FunctionProto):
        return []
    sparse = (tensor.values.name for tensor in body.sparse_initializer)
    return [*(tensor.name for tensor in body.initializer), *sparse]


def _all_names(root: Body) -> Iterator[str]:
    for body in nested_bodies(root):
        yield from _definitions(body)
        for node in body.node:
            yield from node.input


# constants that are written twice


def _without_overwritten(graph: onnx.GraphProto) -> Iterator[str]:
    """Remove all but the last constant of a name; runtimes read Constants after initialisers."""
    constants = [node for node in graph.node if _is_constant(node)]
    names = [tensor.name for tensor in graph.initializer]
    names += [node.output[0] for node in constants]
    repeated = {name: count for name, count in Counter(names).items() if name and count > 1}
    last = {name: place for place, name in enumerate(names)}
    gone = {place for place, name in enumerate(names) if name in repeated and place != last[name]}
    if not gone:
        return
    count = len(graph.initializer)
    dropped = {id(node) for place, node in enumerate(constants, count) if place in gone}
    nodes = [node for node in graph.node if id(node) not in dropped]
    for place in sorted((place for place in gone if place < count), reverse=True):
        del graph.initializer[place]
    if dropped:
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(kept)
    for name, times in repeated.items():
        yield f"{times} constants are named {quoted(name)}; the last one counts, as in ONNX Runtime"


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in {"", "ai.onnx"} and len(node.output) == 1


# new names and back


@dataclass(slots=True)
class _Parting:
    given: dict[str, str]
    taken: set[str]
    """Names that no new one may be equal to."""
    defined: set[str] = field(default_factory=set)

    def part(self, body: Body, outer: Mapping[str, str]) -> None:
        """Rename what is defined already; the depth is bounded by the check in `nested_bodies`."""
        own = {name: self._named(name) for name in dict.fromkeys(_definitions(body))}
        names = {**outer, **own}
        _rename(body, lambda name: names.get(name, name))
        for node in body.node:
            for inner in subgraphs_of(node):
                self.part(inner, names)

    def _named(self, name: str) -> str:
        new, count = name, 0
        while new in self.defined or (new != name and new in self.taken):
            count += 1
            new = f"{name}_{count}"
        self.defined.add(new)
        if new != name:
            self.given[new] = name
        return new


@dataclass(slots=True)
class _Restoring:
    given: Mapping[str, str]

    def restore(self, body: Body, outer: Mapping[str, str], visible: Collection[str]) -> None:
        """Rename one body and those inside it.

        `outer` has the names of surrounding values now, `visible` those that are defined before
        this body: a result may not repeat them, though an operand of the body may.
        """
        captured = {outer.get(name, name) for name in _free_names(body)}
        heads = {*_input_names(body), *_initializer_names(body)}
        own = {name: name for name in _definitions(body) if name not in self.given}
        taken = {*own, *captured}
        for name in dict.fromkeys(_definitions(body)):
            old = self.given.get(name)
            if old is not None:
                may = old not in taken and (name in heads or old not in visible)
                own[name] = old if may else name
                taken.add(own[name])
        names = {**outer, **own}
        seen = {*visible, *(own.get(name, name) for name in heads)}
        for node in body.node:
            for inner in subgraphs_of(node):
                self.restore(inner, names, seen)
            seen.update(own.get(name, name) for name in node.output)
        _rename(body, lambda name: names.get(name, name))


def _free_names(body: Body) -> set[str]:
    """What a body and those inside it read from outside."""
    defined = set(_definitions(body))
    read = {name for node in body.node for name in node.input}
    for node in body.node:
        for inner in subgraphs_of(node):
            read |= _free_names(inner)
    if isinstance(body, onnx.GraphProto):
        read |= {value.name for value in body.output}
    return {name for name in read if name and name not in defined}


def _rename(body: Body, name_of: Callable[[str], str]) -> None:
    """Rename what a body itself refers to, but for what is inside its nodes."""
    if isinstance(body, onnx.FunctionProto):
        _replace(body.input, name_of)
        _replace(body.output, name_of)
    else:
        for holder in (*body.input, *body.output, *body.initializer):
            _set(holder, "name", name_of)
        for sparse in body.sparse_initializer:
            _set(sparse.values, "name", name_of)
        for note in body.quantization_annotation:
            _set(note, "tensor_name", name_of)
            for entry in note.quant_parameter_tensor_names:
                _set(entry, "value", name_of)
    for record in body.value_info:
        _set(record, "name", name_of)
    for node in body.node:
        _replace(node.input, name_of)
        _replace(node.output, name_of)
        for configuration in node.device_configurations:
            for spec in configuration.sharding_spec:
                _set(spec, "tensor_name", name_of)


def _replace(names: MutableSequence[str], name_of: Callable[[str], str]) -> None:
    new = [name_of(name) for name in names]
    if new != list(names):
        names[:] = new


def _set(holder: object, attribute: str, name_of: Callable[[str], str]) -> None:
    old: str = getattr(holder, attribute)
    if name_of(old) != old:
        setattr(holder, attribute, name_of(old))
