"""Chains of Reshape, Transpose and their like, written as briefly as they can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import Shape, constant_of, is_op, shape_of
from relayout.layout.block_move import BLOCK_MOVES
from relayout.layout.blocks import Reshaping, Sizes, Symbol, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.strided_view import Link, composed
from relayout.ops.measure import NOMINAL_LENGTH
from relayout.rewrite.links import VIEWS, NodeLinks, dims_of, read_links
from relayout.rewrite.worklist import consumers

LONGEST = 64
"""Longer chains are looked at in parts, so that the time for all stays in proportion."""

TARGET_IS_OPERAND = 5
"""The opset version from which Reshape takes its target as an operand."""


@dataclass(frozen=True, slots=True)
class CanonicalChain:
    """A chain of views that nothing else reads becomes at most Reshape, Transpose, Reshape.

    Given:  a = Transpose<perm=[0,2,3,1]>(x); b = Reshape(a, [0,64,3]);
            y = Transpose<perm=[0,2,1]>(b)
    Result: y = Reshape(x, [0,3,64])

    Only where fewer Transposes are left, or as many and fewer nodes. A single Transpose is left to
    its own rewrites.
    """

    name: str = "shorten a chain of views"
    op_types: tuple[str, ...] = VIEWS

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        return shorten_chain(node, VIEWS, editor)


def shorten_chain(
    node: ir.Node, members: Sequence[str], editor: Editor
) -> Iterable[ir.Node] | None:
    """Rewrite the chain of such operators through a node; the nodes to look at again."""
    touched: list[ir.Node] = []
    shorter = False
    for chain in chains_through(node, members, editor):
        steps = written(chain, editor)
        if steps is not None and _improves(chain, steps, editor):
            shorter = True
            touched += replace_chain(chain, steps, editor)
    return touched if shorter else None


@dataclass(frozen=True, slots=True)
class Chain:
    """Nodes in a row, each the only consumer of the one before, and what they do."""

    nodes: tuple[ir.Node, ...]
    readings: tuple[NodeLinks, ...]
    source: ir.Value
    sizes: Sizes

    @property
    def result(self) -> ir.Value:
        return self.nodes[-1].outputs[0]

    @property
    def links(self) -> list[Link]:
        return [link for reading in self.readings for link in reading.links]

    @property
    def nonzero(self) -> frozenset[Symbol]:
        return frozenset().union(*(reading.nonzero for reading in self.readings))


def chains_through(node: ir.Node, members: Sequence[str], editor: Editor) -> list[Chain]:
    """The chain a node stands in, in parts where a node in it cannot be read."""
    chains: list[Chain] = []
    part: list[tuple[ir.Node, NodeLinks]] = []
    for member in _neighbours(node, members):
        given = part[-1][1].shape if part else _sizes(member.inputs[0])
        reading = None if given is None else read_links(editor.region.view(member), given)
        if reading is not None:
            part.append((member, reading))
            continue
        chains += _chain(part)
        part = []
    return [*chains, *_chain(part)]


def _sizes(value: ir.Value | None) -> Sizes | None:
    shape = shape_of(value)
    return None if shape is None else sizes_of(shape, "source")


def _chain(part: Sequence[tuple[ir.Node, NodeLinks]]) -> Iterator[Chain]:
    if not part:
        return
    nodes, parts = zip(*part, strict=True)
    source = nodes[0].inputs[0]
    sizes = _sizes(source)
    if source is not None and sizes is not None and constant_of(source) is None:
        yield Chain(nodes, parts, source, sizes)


def _neighbours(node: ir.Node, members: Sequence[str]) -> list[ir.Node]:
    """The node with what stands before and after it without a second consumer."""
    before = [node]
    while len(before) < LONGEST and (other := _before(before[-1], members)) is not None:
        before.append(other)
    after = [node]
    while len(after) < LONGEST and (other := _after(after[-1], members)) is not None:
        after.append(other)
    return [*reversed(before), *after[1:]]


def _before(node: ir.Node, members: Sequence[str]) -> ir.Node | None:
    value = node.inputs[0]
    producer = None if value is None else value.producer()
    if producer is None or not is_op(producer, *members):
        return None
    return producer if _after(producer, members) is node else None


def _after(node: ir.Node, members: Sequence[str]) -> ir.Node | None:
    value = node.outputs[0]
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None
    consumer, operand = uses[0].node, uses[0].idx
    if operand != 0 or consumer.graph is not node.graph or not is_op(consumer, *members):
        return None
    return consumer


# writing


@dataclass(frozen=True, slots=True)
class ViewStep:
    """A node to be written: a Transpose by its order, or a Reshape by its target."""

    link: Link
    shape: Sizes
    target: tuple[int, ...] = ()

    @property
    def moves(self) -> bool:
        return isinstance(self.link, Permutation)


def written(chain: Chain, editor: Editor) -> Sequence[ViewStep] | None:
    """The shortest steps that do what a chain does; None where no constants can state them."""
    steps = _shortest(chain.sizes, tuple(chain.links), chain.nonzero)
    is_old = editor.region.version < TARGET_IS_OPERAND
    if steps is None or (is_old and not all(step.moves for step in steps)):
        return None
    return steps


@lru_cache(maxsize=4096)
def _shortest(
    given: Sizes, links: tuple[Link, ...], nonzero: frozenset[Symbol]
) -> tuple[ViewStep, ...] | None:
    """The steps of a chain; repeated blocks have the same ones, and every pass looks again."""
    steps: list[ViewStep] = []
    for view in composed(given, links):
        ways = (_steps(view.source, way, nonzero) for way in view.emissions)
        shortest = next((way for way in ways if way is not None), None)
        if shortest is None:
            return None
        steps += shortest
    return tuple(steps)


def _steps(
    given: Sizes, links: Iterable[Link], nonzero: frozenset[Symbol]
) -> list[ViewStep] | None:
    steps = []
    for link in links:
        step = _step(given, link, nonzero)
        if step is None:
            return None
        steps.append(step)
        given = step.shape
    return steps


def _step(given: Sizes, link: Link, nonzero: frozenset[Symbol]) -> ViewStep | None:
    if isinstance(link, Permutation):
        return ViewStep(link, link.reorder(given))
    as_given = Permutation.identity(len(given)), Permutation.identity(len(link))
    target = Reshaping(given, link, nonzero).target(*as_given)
    return None if target is None else ViewStep(link, link, target)


def _improves(chain: Chain, steps: Sequence[ViewStep], editor: Editor) -> bool:
    """Whether fewer operators move data, or as many and fewer nodes are left, at no cost."""
    if len(chain.nodes) == 1 and is_op(chain.nodes[0], "Transpose"):
        return False
    old = [node for node in chain.nodes if is_op(node, "Transpose")]
    new = [step for step in steps if step.moves]
    if len(new) > len(old) or _elements(old) < sum(_nominal(dims_of(s.shape)) for s in new):
        return False
    moving = [node for node in chain.nodes if is_op(node, "Transpose", *BLOCK_MOVES)]
    carried = not steps and chain.result.is_graph_output()
    carrier = int(carried and not editor.may_be_renamed(chain.source))
    return (len(new), len(steps) + carrier) < (len(moving), len(chain.nodes))


def _elements(transposes: Iterable[ir.Node]) -> int:
    return sum(_nominal(shape_of(node.outputs[0]) or ()) for node in transposes)


def _nominal(shape: Shape) -> int:
    """The number of elements, where an unknown length counts as it does in a measure."""
    return prod(length if isinstance(length, int) else NOMINAL_LENGTH for length in shape)


def replace_chain(chain: Chain, steps: Iterable[ViewStep], editor: Editor) -> list[ir.Node]:
    """Let the steps stand for the chain; the nodes to look at again."""
    steps, last, value = tuple(steps), chain.nodes[-1], chain.source
    if len(chain.nodes) > 1 and _does_alone(last, chain.sizes, steps, editor):
        before = chain.nodes[-2]
        editor.read(last, 0, value)
        editor.discard(before)
        return [last]
    touched: list[ir.Node | None] = []
    for step in steps:
        value = _added(step, value, chain, editor)
        touched.append(value.producer())
    touched += consumers(chain.result)
    editor.substitute(chain.result, value, origin=last)
    editor.discard(last)
    return [node for node in touched if node is not None]


def _does_alone(node: ir.Node, given: Sizes, steps: Sequence[ViewStep], editor: Editor) -> bool:
    """Whether a node that only reshapes does all that these steps do, and so keeps its name."""
    if len(steps) != 1 or steps[0].moves or is_op(node, "Transpose", *BLOCK_MOVES):
        return False
    reading = read_links(editor.region.view(node), given)
    return reading is not None and reading.shape == steps[0].shape


def _added(step: ViewStep, value: ir.Value, chain: Chain, editor: Editor) -> ir.Value:
    last = chain.nodes[-1]
    if isinstance(step.link, Permutation):
        return editor.transposed(value, step.link, before=last, origin=chain.nodes)
    hint = f"{chain.result.name}_viewed"
    target = np.asarray(step.target, np.int64)
    return editor.add(
        "Reshape",
        [value, editor.constant(target, hint=f"{hint}_shape", before=last)],
        before=last,
        hint=hint,
        like=chain.result,
        shape=ir.Shape(dims_of(step.shape)),
        origin=chain.nodes,
    )
