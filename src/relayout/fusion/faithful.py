"""The partition of a graph by TVM's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from relayout.fusion.codes import Why
from relayout.fusion.dialects import RELAY, GraphDialect
from relayout.fusion.expressions import Tag
from relayout.fusion.forward_graph import Vertex, forward_graph
from relayout.fusion.groups import Abilities, Group, Limits, Partition
from relayout.fusion.helpers import runnable_order, with_helpers
from relayout.fusion.phases import Phases
from relayout.fusion.post_dominators import Dominator, post_dominators
from relayout.fusion.refusals import Refusals
from relayout.fusion.settled import Settled
from relayout.fusion.translate import Translation, translate
from relayout.fusion.unions import Union
from relayout.graph.region import Region
from relayout.ops.kind import Kind


@dataclass(frozen=True, slots=True)
class FusedRegion:
    """All that the phases know at the end."""

    translation: Translation
    order: Sequence[Vertex]
    dominators: Sequence[Dominator]
    unions: Sequence[Union]
    refusals: dict[int, Why]


def fuse(
    region: Region, limits: Limits, settled: Settled, dialect: GraphDialect = RELAY
) -> FusedRegion:
    translation = translate(region, settled, dialect)
    first = translation.in_file_order() if dialect.in_file_order else ()
    order = forward_graph(translation.parameters, translation.results, first)
    dominators = post_dominators(order)
    phases = Phases(order, dominators, limits)
    return FusedRegion(translation, order, dominators, phases.run(), phases.refusals)


def faithful(
    region: Region, limits: Limits, settled: Settled, _abilities: Abilities | None = None
) -> Partition:
    return stated(fuse(region, limits, settled), limits)


def stated(fused: FusedRegion, limits: Limits) -> Partition:
    """What the phases found, as a partition."""
    translation = fused.translation
    refused = Refusals(translation, fused.dominators, fused.unions, limits)
    refusals = tuple(refused.stated(fused.order, fused.refusals))
    groups = tuple(groups_of(fused))
    return Partition(translation.region.graph, groups, refusals, translation.settled.ahead)


def groups_of(fused: FusedRegion) -> list[Group]:
    """The groups, in the order of the vertices that all others in a group lead to."""
    members: dict[int, list[Vertex]] = {}
    for vertex, union in zip(fused.order, fused.unions, strict=True):
        members.setdefault(union.find().root.index, []).append(vertex)
    position = {node: number for number, node in enumerate(fused.translation.calls)}
    groups = [
        _group(members[root], fused, position)
        for root in sorted(members)
        if any(_is_operator(vertex) for vertex in members[root])
    ]
    grouped = {node for group in groups for node in group.nodes}
    unread = (node for node in fused.translation.calls if node not in grouped)
    groups.extend(alone(node, fused.translation) for node in unread)
    return runnable(groups, fused.translation)


def runnable(groups: Sequence[Group], translation: Translation) -> list[Group]:
    """The groups with what runs ahead inside them; those that would wait for themselves apart."""
    ahead = translation.settled.ahead
    if not ahead:
        return list(groups)
    helped = with_helpers(groups, ahead)
    while True:
        order, circle = runnable_order(helped, ahead)
        if not circle:
            return [helped[number] for number in order]
        parts = [
            [alone(node, translation) for node in group.nodes] if number in circle else [group]
            for number, group in enumerate(helped)
        ]
        helped = [group for part in parts for group in part]


def alone(node: ir.Node, translation: Translation) -> Group:
    """An operator as a group of its own."""
    fusing = translation.fusings[node]
    anchor = node if fusing.kind is Kind.COMPLEX else None
    return Group((node,), fusing.kind, anchor, constants=parameters_of(node, translation))


def parameters_of(node: ir.Node, translation: Translation) -> tuple[ir.Value, ...]:
    """The constant operands of a node that only parametrise it."""
    given = (node.inputs[place] for place in translation.fusings[node].parameters)
    return tuple(dict.fromkeys(value for value in given if value is not None))


def _group(members: Sequence[Vertex], fused: FusedRegion, position: dict[ir.Node, int]) -> Group:
    union = fused.unions[members[0].index].find()
    found: list[ir.Node] = [v.expression.source for v in members if _is_operator(v)]
    nodes = sorted(found, key=position.__getitem__)
    absorbed = [v.expression.source for v in members if v.expression.tag is Tag.CONSTANT]
    given = [value for node in nodes for value in parameters_of(node, fused.translation)]
    anchor = None if union.anchor is None else union.anchor.expression.source
    constants = tuple(dict.fromkeys((*absorbed, *given)))
    return Group(tuple(nodes), union.kind, anchor, constants=constants)


def _is_operator(vertex: Vertex) -> bool:
    return vertex.expression.tag in {Tag.CALL, Tag.CONTROL}
