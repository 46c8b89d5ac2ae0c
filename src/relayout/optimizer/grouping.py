"""The groups of a model: what is settled before, the choice itself, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from relayout.errors import RelayoutError, near
from relayout.fusion.ahead import Ahead
from relayout.fusion.border import operands_of, results_of
from relayout.fusion.exceeding import exceeding_notices
from relayout.fusion.groups import Limits, Partition
from relayout.fusion.naming import is_called
from relayout.fusion.partition import RELAYOUT, TVM, mode_of, partition, unfused
from relayout.fusion.settled import Settled
from relayout.fusion.traffic import traffic_of
from relayout.graph.io.inline import inlined
from relayout.graph.io.load import reloaded
from relayout.graph.io.model import LoadedModel
from relayout.graph.region import Region, bodies_of, regions_of
from relayout.ops.measure import runs_of
from relayout.optimizer.describe import assumed_for
from relayout.optimizer.pipeline import learn_shapes
from relayout.report.fusion import Kernels
from relayout.report.records import Assumed

UNFUSED = "unfused"
STOP_KEY = "relayout.stop_fusion"
"""The metadata of a node at which fusing stops."""


@dataclass(frozen=True, slots=True)
class GroupingOptions:
    """What is asked for of groups."""

    mode: str = RELAYOUT.name
    limits: Limits = field(default_factory=Limits)
    stop: Sequence[str] = ()
    """Nodes at which fusing stops, by name or by what they write."""
    keep_function: Sequence[str] = ()
    """Functions of the model, a call of which is a kernel of its own."""
    wrap_all: bool = False
    """Whether an operator alone becomes a function as well."""

    def __post_init__(self) -> None:
        mode_of(self.mode)
        for names in (self.stop, self.keep_function):
            if isinstance(names, str):
                raise RelayoutError(f"names are given as a list, not as the string {names!r}")


@dataclass(frozen=True, slots=True)
class Grouping:
    """A model without groups, and the groups that were chosen for it."""

    flat: LoadedModel
    mode: str
    partitions: tuple[Partition, ...] = ()
    """One for each graph; none where the model cannot be changed."""
    figures: Mapping[str, Kernels] = field(default_factory=dict)
    seconds: float = 0.0
    dims: Mapping[str, int] = field(default_factory=dict)

    def assumed(self) -> Assumed:
        """The lengths that the sizes of what kernels read and write depend on, if not given."""
        if not self.partitions:
            return Assumed()
        return assumed_for(self.flat, self._handed_over(), self.dims)

    def _handed_over(self) -> Iterator[ir.Value]:
        for each in self.partitions:
            yield from (value for group in each.groups for value in operands_of(group))
            yield from (value for results in results_of(each) for value in results)


def grouping_of(
    loaded: LoadedModel, options: GroupingOptions, dims: Mapping[str, int] | None = None
) -> Grouping:
    """The groups of a model that may be changed."""
    flat = flattened(loaded)
    if flat.frozen is not None:
        return Grouping(flat, options.mode)
    regions, settled = prepared(flat, options)
    limits = options.limits
    since = time.perf_counter()
    chosen = [partition(each, options.mode, limits, settled=settled) for each in regions]
    seconds = time.perf_counter() - since
    ways = {
        UNFUSED: [unfused(region, settled) for region in regions],
        TVM.name: [partition(region, TVM.name, limits, settled=settled) for region in regions],
        options.mode: chosen,
    }
    runs = runs_of(regions)
    figures = {way: _kernels(parts, runs, dims or {}) for way, parts in ways.items()}
    flat.notices.extend(exceeding_notices(chosen, limits, options.mode))
    marked = tuple(replace(each, wrap_all=options.wrap_all) for each in chosen)
    return Grouping(flat, options.mode, marked, figures, seconds, dims or {})


def flattened(loaded: LoadedModel) -> LoadedModel:
    """The model without the groups that an earlier run wrote into it."""
    message, notices = inlined(loaded.source)
    if message is loaded.source:
        return loaded
    flat = reloaded(loaded, message)
    flat.notices.extend(notices)
    return flat


def prepared(flat: LoadedModel, options: GroupingOptions) -> tuple[list[Region], Settled]:
    """The graphs that groups are chosen for, and what is settled about their nodes before."""
    learn_shapes(flat.ir)
    kept = _functions_named(flat.ir, options.keep_function)
    hidden = {id(graph) for function in _hidden(flat.ir, kept) for graph in _graphs_of(function)}
    regions = [region for region in regions_of(flat.ir) if id(region.graph) not in hidden]
    ahead = Ahead.of(regions)
    known = [replace(region, known=ahead.known) for region in regions]
    nodes = [node for region in regions for node in region.graph]
    apart = frozenset(node for node in nodes if node.op_identifier() in kept)
    stops = frozenset(_stops(nodes, options.stop))
    return known, Settled(frozenset(ahead.nodes), stops, apart)


def _stops(nodes: Sequence[ir.Node], names: Iterable[str]) -> Iterator[ir.Node]:
    yield from (node for node in nodes if node.metadata_props.get(STOP_KEY, "0") != "0")
    for name in names:
        found = [node for node in nodes if is_called(node, name)]
        if not found:
            raise no_such_node(name, nodes)
        yield from found


def no_such_node(name: str, nodes: Iterable[ir.Node]) -> RelayoutError:
    hint = near(name, [node.name for node in nodes])
    return RelayoutError(f"the model has no node {name!r}, and none that writes such a value{hint}")


# functions of the model that are kernels of their own


def _functions_named(model: ir.Model, names: Iterable[str]) -> set[ir.OperatorIdentifier]:
    """The functions of these names, with or without their domains."""
    found: set[ir.OperatorIdentifier] = set()
    for wanted in names:
        same = {key for key in model.functions if wanted in {key[1], f"{key[0]}.{key[1]}"}}
        if not same:
            raise RelayoutError(f"the model has no function {wanted!r}")
        found |= same
    return found


def _hidden(model: ir.Model, kept: set[ir.OperatorIdentifier]) -> list[ir.Function]:
    """The functions inside which no groups are chosen: those kept, and those only they call."""
    inside = _called(model, [model.functions[key] for key in kept], set())
    outside = _called(model, [model.graph], kept)
    return [model.functions[key] for key in model.functions if key in kept | (inside - outside)]


def _called(
    model: ir.Model,
    start: Iterable[ir.Graph | ir.Function],
    kept: set[ir.OperatorIdentifier],
) -> set[ir.OperatorIdentifier]:
    """The functions that are called from here at any depth, but not through those kept."""
    found: set[ir.OperatorIdentifier] = set()
    waiting = list(start)
    while waiting:
        for graph in _graphs_of(waiting.pop()):
            keys = {node.op_identifier() for node in graph} & set(model.functions)
            waiting.extend(model.functions[key] for key in keys - found - kept)
            found |= keys - kept
    return found


def _graphs_of(outer: ir.Graph | ir.Function) -> Iterator[ir.Graph]:
    graph = outer.graph if isinstance(outer, ir.Function) else outer
    yield graph
    yield from (body for node in graph for body in bodies_of(node))


# what groups cost


def _kernels(
    partitions: Sequence[Partition], runs: Mapping[ir.Graph, int], dims: Mapping[str, int]
) -> Kernels:
    """The sum over all graphs; what the body of a loop moves counts as often as it runs."""
    found = [(traffic_of(part, dims), runs[part.graph]) for part in partitions]
    return Kernels(
        kernels=sum(traffic.kernels for traffic, _ in found),
        bytes_read=sum(traffic.bytes_read * times for traffic, times in found),
        bytes_written=sum(traffic.bytes_written * times for traffic, times in found),
    )
