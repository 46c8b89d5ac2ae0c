"""Where names are defined and read: each is defined once, before it is read, and without cycles."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import onnx

from relayout.errors import BadModelError, quoted
from relayout.graph.messages.walk import Body, described, nested_bodies, subgraphs_of

BEFORE_ALL = -1
"""The position of what is there before the first node: inputs and initialisers."""


@dataclass(slots=True)
class Scopes:
    """What the walk over all bodies of a model found."""

    unsorted: int = 0
    """How many bodies had to be sorted."""
    passed_through: list[str] = field(default_factory=list)
    """Outer values that a body of control flow gives back without a node in between."""


def check_scopes(model: onnx.ModelProto) -> Scopes:
    """Refuse names that are defined twice, never, or in a cycle."""
    return _Checker(sort=False).model(model)


def sorted_copy(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the nodes of each body in an order in which they can run.

    Nodes keep their given order as far as that is possible.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _Checker(sort=True).model(copy)
    return copy


@dataclass(slots=True)
class _Checker:
    sort: bool
    found: Scopes = field(default_factory=Scopes)

    def model(self, model: onnx.ModelProto) -> Scopes:
        for body in (model.graph, *model.functions):
            for name, reader in self._free_names(body).items():
                raise BadModelError(f"{reader} reads {quoted(name)}, which nothing defines")
        return self.found

    def _free_names(self, body: Body) -> dict[str, str]:
        """The names a body reads from outside, each with a description of one consumer.

        The depth of this recursion is bounded by the check in `nested_bodies`.
        """
        _check_named_outputs(body)
        defined = _definitions(body)
        reads = [self.reads(node) for node in body.node]
        free = {
            name: described(body.node[index])
            for index, names in enumerate(reads)
            for name in names
            if name not in defined
        }
        free |= {
            name: f"an output of {_title(body)}"
            for name in _output_names(body)
            if name not in defined
        }
        self.found.passed_through.extend(
            name for name in _output_names(body) if name not in defined
        )
        self._put_in_order(body, defined, reads)
        return free

    def reads(self, node: onnx.NodeProto) -> list[str]:
        """The names that a node and its bodies read."""
        captured = [name for body in subgraphs_of(node) for name in self._free_names(body)]
        return [name for name in (*node.input, *captured) if name]

    def _put_in_order(self, body: Body, defined: dict[str, int], reads: list[list[str]]) -> None:
        needs = _needs(defined, reads)
        if all(need < index for index, positions in enumerate(needs) for need in positions):
            return
        order = _stable_order(body, needs)
        self.found.unsorted += 1
        if not self.sort:
            return
        nodes = [body.node[index] for index in order]
        del body.node[:]
        body.node.extend(nodes)


def runnable_order(body: Body) -> list[int]:
    """The places of the nodes of a body in an order in which they can run, near the given one."""
    checker = _Checker(sort=False)
    reads = [checker.reads(node) for node in body.node]
    return _stable_order(body, _needs(_definitions(body), reads))


def free_names(graph: onnx.GraphProto) -> list[str]:
    """The names that a graph and its bodies read or give back without defining them."""
    bodies = list(nested_bodies(graph))
    defined = {name for body in bodies for name in _definitions(body)}
    read = [name for body in bodies for node in body.node for name in node.input]
    given = [name for body in bodies for name in _output_names(body)]
    return [name for name in (*read, *given) if name not in defined]


def _check_named_outputs(body: Body) -> None:
    if isinstance(body, onnx.GraphProto) and not all(value.name for value in body.output):
        raise BadModelError(f"{_title(body)} has an output without a name")


def _definitions(body: Body) -> dict[str, int]:
    """Where each name of a body is defined; refuses a second definition."""
    defined: dict[str, int] = {}
    for name in _unique(_input_names(body), "input", body):
        defined[name] = BEFORE_ALL
    for name in _unique(_initializer_names(body), "initialiser", body):
        defined[name] = BEFORE_ALL
    for index, node in enumerate(body.node):
        for name in node.output:
            if name and name in defined:
                raise BadModelError(
                    f"{described(node)} writes {quoted(name)}, which is defined already"
                )
            defined[name] = index
    defined.pop("", None)
    return defined


def _needs(defined: dict[str, int], reads: list[list[str]]) -> list[list[int]]:
    """For each node the places of those whose results it reads."""
    return [
        [defined[name] for name in names if defined.get(name, BEFORE_ALL) != BEFORE_ALL]
        for names in reads
    ]


def _stable_order(body: Body, needs: list[list[int]]) -> list[int]:
    """An order in which every node comes after those it needs, near the given one."""
    missing = [len(set(positions)) for positions in needs]
    readers: list[list[int]] = [[] for _ in needs]
    for index, positions in enumerate(needs):
        for position in dict.fromkeys(positions):
            readers[position].append(index)
    ready = [index for index, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) < len(needs):
        stuck = next(index for index, count in enumerate(missing) if count > 0)
        raise BadModelError(f"{described(body.node[stuck])} depends on its own result")
    return order


def _input_names(body: Body) -> list[str]:
    if isinstance(body, onnx.FunctionProto):
        return list(body.input)
    return [value.name for value in body.input]


def _output_names(body: Body) -> list[str]:
    if isinstance(body, onnx.FunctionProto):
        return list(body.output)
    return [value.name for value in body.output if value.name]


def _initializer_names(body: Body) -> Iterator[str]:
    if isinstance(body, onnx.FunctionProto):
        return
    for tensor in body.initializer:
        yield tensor.name
    for sparse in body.sparse_initializer:
        yield sparse.values.name


def _unique(names: Iterable[str], kind: str, body: Body) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise BadModelError(f"{_title(body)} defines the {kind} {quoted(name)} twice")
        seen.add(name)
        yield name


def _title(body: Body) -> str:
    kind = "function" if isinstance(body, onnx.FunctionProto) else "graph"
    return f"{kind} {quoted(body.name)}"
