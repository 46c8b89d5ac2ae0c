"""Recognises softmax(scale · Q Kᵀ + mask) V in the spellings of exporters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from relayout.graph.read import constant_of, is_op, rank_of
from relayout.graph.region import Region
from relayout.layout.blocks import UNIT, Size, Sizes
from relayout.layout.strided_view import View
from relayout.layout.transport import Refusal
from relayout.rewrite.attention_heads import (
    DEPTH_THIRD,
    HEADS_SECOND,
    LENGTH_FIRST,
    LONGEST,
    Heads,
    Ports,
    heads_apart,
    heads_of,
    sizes_named,
)
from relayout.rewrite.attention_steps import UNSCALED, Scaling, scalar_of, scaling_of
from relayout.rewrite.links import VIEWS, read_links
from relayout.rewrite.repeated import unrepeated
from relayout.rewrite.worklist import consumers

FULL_AXIS_SINCE = 13
"""From this opset on Softmax has one axis, the last by default."""


@dataclass(frozen=True, slots=True)
class Mask:
    """What is added to the scores, by its lengths along their four axes."""

    value: ir.Value
    sizes: Sizes
    chooses: bool = False
    """Whether it is a condition: scores stay where it is true and are -inf where it is not."""


@dataclass(frozen=True, slots=True)
class Core:
    """An attention whose operands can be read with their heads side by side."""

    ports: Ports
    scale: Scaling
    masks: tuple[Mask, ...]
    guarded: bool
    """Whether rows that are masked as a whole give 0 where a softmax gives NaN."""
    node: ir.Node
    """The product with V."""
    replaced: tuple[ir.Node, ...]
    """The nodes between and with the two products, which one operator stands for."""

    @property
    def result(self) -> ir.Value:
        return self.node.outputs[0]


NOTHING_TO_GAIN = Refusal("no Transpose would be saved")


def core_of(softmax: ir.Node, region: Region, *, anywhere: bool = False) -> Core | Refusal:
    """The attention around a Softmax, if it has Transposes that an operator for it saves.

    `anywhere`: or without any to save, and where its heads come and go apart.
    """
    scores = _scores(softmax.inputs[0])
    weights = _weights(softmax, region)
    if scores is None:
        return Refusal("more than a scale and a mask is between the product with K and Softmax")
    if weights is None:
        return Refusal("the result of Softmax does not go into the product with V alone")
    if not _takes_last_axis(softmax, region):
        return Refusal("Softmax runs along another axis than the last")
    ports = _ports(scores.product, weights.node, region, anywhere=anywhere)
    if isinstance(ports, Refusal):
        return ports
    masks = _masks(scores, ports.query, ports.key)
    if isinstance(masks, Refusal):
        return masks
    scale = scores.scaling.times(ports.query.scaling).times(ports.key.scaling)
    if not ports.value.scaling.is_one or not 0 < scale.number < float("inf"):
        return Refusal("V is scaled, or the scores are scaled by a number that is not positive")
    if scores.viewed and not _has_all_axes(softmax.outputs[0], ports.query, ports.key):
        return Refusal("the scores are reshaped to other axes than batch, heads and two lengths")
    split = (node for port in ports for node in port.nodes)
    replaced = (*split, *scores.nodes, softmax, weights.node)
    core = Core(ports, scale, masks, weights.guarded, weights.node, replaced)
    if not anywhere and not merges(core.result, core.ports, region):
        return Refusal("the only consumer of the result does not merge its heads")
    return core if anywhere or _gains(core) else NOTHING_TO_GAIN


def _ports(
    scores: ir.Node, weighted: ir.Node, region: Region, *, anywhere: bool
) -> Ports | Refusal:
    """The operands of the two products with their heads side by side, or as they are."""
    joined = _ports_joined(scores, weighted, region)
    if not anywhere or isinstance(joined, Ports):
        return joined
    return _ports_apart(scores, weighted) or joined


def _ports_joined(scores: ir.Node, weighted: ir.Node, region: Region) -> Ports | Refusal:
    """The operands of the two products, with their heads side by side."""
    query = heads_of(scores.inputs[0], HEADS_SECOND, region)
    key = heads_of(scores.inputs[1], DEPTH_THIRD, region)
    value = heads_of(weighted.inputs[1], HEADS_SECOND, region)
    if query is None or key is None or value is None:
        lacking = [name for name, port in zip("QKV", (query, key, value), strict=True) if not port]
        return Refusal(f"no split into heads leads to {' and '.join(lacking)}")
    if not _agree(query, key, value):
        return Refusal("Q, K and V are not known to have the same batch, heads and lengths")
    return Ports(query, key, value)


def _ports_apart(scores: ir.Node, weighted: ir.Node) -> Ports | None:
    """The operands of the two products as they are, with their heads apart."""
    query = heads_apart(scores.inputs[0], HEADS_SECOND)
    key = heads_apart(scores.inputs[1], DEPTH_THIRD)
    value = heads_apart(weighted.inputs[1], HEADS_SECOND)
    if query is None or key is None or value is None or not _agree(query, key, value):
        return None
    return Ports(query, key, value)


def _agree(query: Heads, key: Heads, value: Heads) -> bool:
    """Whether the shapes are those of one attention, with nothing repeated."""
    numbers = (query.heads, query.depth, value.depth)
    return (
        query.is_length_first == key.is_length_first == value.is_length_first
        and query.batch == key.batch == value.batch
        and query.heads == key.heads == value.heads
        and query.depth == key.depth
        and key.length == value.length
        and not any(size.symbols for size in numbers)
        and all(_is_known(size) for size in (query.batch, query.length, key.length))
    )


def _is_known(size: Size) -> bool:
    """Whether its symbols mean the same wherever they are read."""
    return all(kind not in {"source", "result"} for kind, _ in size.symbols)


# from the product with K to Softmax


@dataclass(frozen=True, slots=True)
class _Scores:
    product: ir.Node
    scaling: Scaling
    added: tuple[tuple[ir.Value, ir.Node, bool], ...]
    """Each mask with the node that applies it, and whether it is a condition."""
    viewed: bool
    nodes: tuple[ir.Node, ...]
    """The product, and what comes between it and Softmax."""


def _scores(value: ir.Value | None, depth: int = 0) -> _Scores | None:
    """What leads from a product to a value that is read once."""
    node = None if value is None or depth > LONGEST else _only_read(value)
    if node is None:
        return None
    if is_op(node, "MatMul"):
        return _Scores(node, UNSCALED, (), viewed=False, nodes=(node,))
    if is_op(node, "Add"):
        return _added(node, depth)
    if is_op(node, "Where"):
        return _chosen(node, depth)
    if is_op(node, "Reshape", "Squeeze", "Unsqueeze", "Identity"):
        inner = _scores(node.inputs[0], depth + 1)
        return None if inner is None else replace(inner, viewed=True, nodes=(*inner.nodes, node))
    scaled = scaling_of(node)
    inner = None if scaled is None else _scores(scaled[0], depth + 1)
    if scaled is None or inner is None or inner.added:
        return None
    scaling = inner.scaling.times(scaled[1])
    return replace(inner, scaling=scaling, nodes=(*inner.nodes, node))


def _added(node: ir.Node, depth: int) -> _Scores | None:
    for scores, mask in (node.inputs, tuple(reversed(node.inputs))):
        inner = _scores(scores, depth + 1)
        if inner is not None and mask is not None:
            added = (*inner.added, (mask, node, False))
            return replace(inner, added=added, nodes=(*inner.nodes, node))
    return None


def _chosen(node: ir.Node, depth: int) -> _Scores | None:
    condition, scores, other = node.inputs
    if condition is None or scalar_of(other) != float("-inf"):
        return None
    inner = _scores(scores, depth + 1)
    if inner is None:
        return None
    added = (*inner.added, (condition, node, True))
    return replace(inner, added=added, nodes=(*inner.nodes, node))


def _only_read(value: ir.Value) -> ir.Node | None:
    """The producer of a value that has one consumer."""
    return None if value.is_graph_output() or len(value.uses()) != 1 else value.producer()


# from Softmax to the product with V


@dataclass(frozen=True, slots=True)
class _Weights:
    node: ir.Node
    guarded: bool


def _weights(softmax: ir.Node, region: Region) -> _Weights | None:
    value, guarded = softmax.outputs[0], False
    for _ in range(LONGEST):
        guard = None if guarded else _guard(value)
        consumer = guard or _only_consumer(value)
        guarded = guarded or guard is not None
        if consumer is None:
            return None
        if is_op(consumer, "MatMul"):
            return _Weights(consumer, guarded) if consumer.inputs[0] is value else None
        if guard is None and not _does_nothing(consumer, region):
            return None
        value = consumer.outputs[0]
    return None


def _only_consumer(value: ir.Value) -> ir.Node | None:
    uses = list(value.uses())
    same_graph = len(uses) == 1 and uses[0].node.graph is value.graph
    return uses[0].node if same_graph and not value.is_graph_output() else None


def _does_nothing(node: ir.Node, region: Region) -> bool:
    """Identity, or Dropout as it is outside of training."""
    if not is_op(node, "Identity", "Dropout"):
        return False
    view = region.view(node)
    training = view.constant(2)
    return not view.uses_result(1) and (
        not view.has(2) or (training is not None and not training.any())
    )


def _guard(value: ir.Value) -> ir.Node | None:
    """The Where that replaces NaN by 0."""
    uses = consumers(value)
    tests = [node for node in uses if is_op(node, "IsNaN")]
    if len(uses) != 2 or len(tests) != 1 or value.is_graph_output():
        return None
    where = next(node for node in uses if node is not tests[0])
    if not is_op(where, "Where") or _only_consumer(tests[0].outputs[0]) is not where:
        return None
    condition, then, otherwise = where.inputs
    fits = condition is tests[0].outputs[0] and otherwise is value and scalar_of(then) == 0
    return where if fits else None


def _takes_last_axis(softmax: ir.Node, region: Region) -> bool:
    rank = rank_of(softmax.inputs[0])
    axis = region.view(softmax).integer("axis", -1 if region.version >= FULL_AXIS_SINCE else 1)
    return rank is not None and axis in {-1, rank - 1}


# masks


def _masks(scores: _Scores, query: Heads, key: Heads) -> tuple[Mask, ...] | Refusal:
    masks = []
    for value, node, chooses in scores.added:
        mask = _mask(value, node, scores, query, key)
        if mask is None:
            return Refusal(
                f"the mask '{value.name}' is not known to have the batch and length of Q"
            )
        masks.append(replace(mask, chooses=chooses))
    return tuple(masks)


def _mask(value: ir.Value, node: ir.Node, scores: _Scores, query: Heads, key: Heads) -> Mask | None:
    """A mask that stays within the scores, along their four axes."""
    given = sizes_named(value)
    rank = rank_of(node.outputs[0])
    if given is None or rank is None or len(given) > rank:
        return None
    if scores.viewed and not _has_all_axes(node.outputs[0], query, key):
        return None
    units = [UNIT] * (rank - len(given))
    sizes = [*units, *given]
    if rank == 3 and sizes[0] == UNIT:
        sizes = [UNIT, *sizes]
    while len(sizes) > 4 and sizes[0] == UNIT:
        sizes = sizes[1:]
    if len(sizes) != 4:
        return None
    batch, heads, length, _ = sizes
    wanted = (query.batch, query.heads, query.length)
    fits = all(
        size in {UNIT, full} for size, full in zip((batch, heads, length), wanted, strict=True)
    )
    # Along the last axis it is as long as V, or of length 1: else the product would not run.
    return Mask(value, tuple(sizes)) if fits else None


def _has_all_axes(value: ir.Value, query: Heads, key: Heads) -> bool:
    """Whether scores that were reshaped have the axes of an attention, but for leading units."""
    sizes = sizes_named(value)
    if sizes is None:
        return False
    while len(sizes) > 4 and sizes[0] == UNIT:
        sizes = sizes[1:]
    rows = (query.length, key.length)
    merged = (query.batch * query.heads, *rows)
    return sizes in {(query.batch, query.heads, *rows), merged}


def leave_numbers(masks: Sequence[Mask]) -> bool:
    """Whether a row of scores surely has a number left once all masks are added."""
    hiding = [mask for mask in masks if not _is_finite(mask)]
    return not hiding or (len(hiding) == 1 and _shows_some(hiding[0]))


def _is_finite(mask: Mask) -> bool:
    """Whether a mask surely leaves every score a number."""
    least = least_of(mask)
    return least is not None and least > -np.inf


def _shows_some(mask: Mask) -> bool:
    """Whether a mask is a constant that leaves a number in each row."""
    given = unrepeated(mask.value)
    if given is None:
        return False
    array = np.atleast_1d(given)
    shown = array if mask.chooses else array.astype(np.float64) > -np.inf
    return bool(shown.any(axis=-1).all())


def least_of(mask: Mask) -> float | None:
    """The least entry of a mask that is a constant, or is chosen from constants."""
    if mask.chooses:
        return float("-inf")
    node = mask.value.producer()
    parts = node.inputs[1:] if node is not None and is_op(node, "Where") else [mask.value]
    tensors = [tensor for part in parts if (tensor := constant_of(part)) is not None]
    if len(tensors) != len(parts):
        return None
    return min(float(tensor.numpy().min(initial=np.inf)) for tensor in tensors)


# the result


def merges(result: ir.Value, ports: Ports, region: Region) -> bool:
    """Whether the heads of a result are moved after its length by its only consumer."""
    query, value = ports.query, ports.value
    split: Sizes = (query.batch, query.length, query.heads, value.depth)
    sizes: Sizes = HEADS_SECOND.reorder(split)
    links = [HEADS_SECOND]
    if query.is_length_first:
        split, links = LENGTH_FIRST.reorder(split), [LENGTH_FIRST, HEADS_SECOND]
    view = View.along(split, links)
    if view is not None and rank_of(result) == 3:
        sizes = (query.batch * query.heads, query.length, value.depth)
        view = view.then(sizes)
    while view is not None and view.moves:
        consumer = _only_consumer(result)
        if consumer is None or not is_op(consumer, *VIEWS) or consumer.inputs[0] is not result:
            return False
        reading = read_links(region.view(consumer), sizes)
        if reading is None:
            return False
        for link in reading.links:
            view = None if view is None else view.then(link)
        result, sizes = consumer.outputs[0], reading.shape
    return view is not None


def _gains(core: Core) -> bool:
    """Whether a Transpose goes that nothing else reads."""
    traced = [node for port in core.ports for node in port.nodes] + consumers(core.result)
    return any(is_op(node, "Transpose") and len(consumers(node.outputs[0])) == 1 for node in traced)
