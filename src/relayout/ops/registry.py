"""Finds the facts about the operator of a node; one that is not declared is unknown.

A package declares operators with an entry point, which is loaded when a model has an operator that
is not known here. It names facts, a sequence of them, or a function without arguments that gives
either:

[project.entry-points."relayout.ops"]
mine = "my_package:FACTS"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from typing import overload

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.editing.editor import is_our_own
from relayout.graph.read import NodeView
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.permutation import AxisError, Permutation
from relayout.layout.splitting import AxisMap
from relayout.layout.transport import Refusal, Transport
from relayout.ops import (
    axis,
    broadcasting,
    contrib,
    control,
    convolution,
    einsum,
    elementwise,
    indexing,
    movement,
    normalization,
    pooling,
    product,
    quantization,
    recurrent,
    reduction,
    source,
    views,
)
from relayout.ops.facts import OpFacts
from relayout.ops.like import facts_like
from relayout.ops.rule import OpRule, ask
from relayout.ops.shuffles import NO_SHUFFLES, EntryMap, ShuffleFacts, following
from relayout.registry.registry import installed, loaded, plugin_of

GROUP = "relayout.ops"

FAMILIES = (
    elementwise,
    broadcasting,
    axis,
    reduction,
    indexing,
    views,
    movement,
    normalization,
    convolution,
    pooling,
    product,
    einsum,
    quantization,
    recurrent,
    control,
    source,
    contrib,
)

FACTS: dict[tuple[str, str], OpFacts] = {
    (facts.domain, op_type): facts
    for family in FAMILIES
    for facts in family.FACTS
    for op_type in facts.op_types
}
"""Every operator that is known so far, by domain and name."""

UNKNOWN = OpFacts((), computes_only=False)
"""What is known of an operator that is not declared."""


def facts_of(node: ir.Node) -> OpFacts:
    """What is known of the operator of a node."""
    return facts_named(node.domain, node.op_type)


def facts_named(domain: str, op_type: str) -> OpFacts:
    """What is known of an operator; the standard domain has no name."""
    return FACTS.get((domain, op_type)) or _declared_outside(domain, op_type)


def facts_in_any_layout(node: ir.Node) -> OpFacts:
    """The same, where a kernel of another layout counts as the operator that it replaces."""
    return facts_of(node) if node.domain != KERNEL_DOMAIN else _of_kernel(node.op_type)


@cache
def _of_kernel(name: str) -> OpFacts:
    found = re.match(r"(\w+?)\dd(_|$)", name)
    return facts_named("", found[1]) if found else UNKNOWN


def names_of(is_wanted: Callable[[OpFacts], object]) -> tuple[str, ...]:
    """The full names of the operators whose facts are wanted."""
    return tuple(full_name(*key) for key, facts in FACTS.items() if is_wanted(facts))


def full_name(domain: str, op_type: str) -> str:
    return f"{domain}.{op_type}" if domain else op_type


# questions to the facts


def computes_only(node: ir.Node) -> bool:
    """Whether a node only computes, so that it may be removed where nothing reads it."""
    return is_our_own(node) or facts_of(node).computes_only


def rule_of(view: NodeView) -> OpRule:
    return facts_of(view.node).rule


def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The node restated for a lead operand stored in `order`."""
    return ask(rule_of(view), view, order)


def shuffles_of(view: NodeView) -> ShuffleFacts:
    """How a node runs where the entries of an axis come in another order."""
    ranks = (view.rank(index) for index in range(view.arity) if view.has(index))
    if view.unknown_attribute is not None or None in ranks:
        return NO_SHUFFLES
    return facts_of(view.node).shuffles or _BY_AXES


def _entry_map(view: NodeView) -> EntryMap | Refusal:
    """Axes that can be split into any factors are collections, whose entries may come anyhow."""
    found = axis_map(view)
    if isinstance(found, Refusal):
        return found
    return EntryMap(found.operands, found.results, found.whole)


_BY_AXES = following(_entry_map)


def axis_map(view: NodeView) -> AxisMap | Refusal:
    """How the axes of a node belong together, or why that is not known."""
    axes = facts_of(view.node).axes
    if axes is None:
        return Refusal(f"nothing is known about the axes of {view.op_type}")
    if view.unknown_attribute is not None or view.rank(0) is None:
        return Refusal(f"the rank or an attribute of {view.op_type} is unknown")
    try:
        return axes(view)
    except AxisError as error:
        return Refusal(f"{view.op_type} is not valid: {error}")


# operators from outside


@overload
def register_operator(facts: OpFacts, /) -> None: ...


@overload
def register_operator(domain: str, op_type: str, /, *, like: str | tuple[str, str]) -> None: ...


def register_operator(
    facts: OpFacts | str, op_type: str = "", /, *, like: str | tuple[str, str] = ""
) -> None:
    """Declare an operator: by facts, or as one that treats the axes of its operands like another.

    `like` names an operator of the standard domain, or a domain and an operator. Its operands and
    attributes mean the same as those of the newest version. It may compute other numbers, so it is
    neither evaluated nor stated by other operators. What is known already is refused.
    """
    if isinstance(facts, OpFacts):
        _add([facts])
        return
    if not op_type or not like:
        raise RelayoutError("an operator is registered by its facts, or by domain, name and like")
    domain, name = ("", like) if isinstance(like, str) else like
    known = facts_named(_unnamed(domain), name)
    if known is UNKNOWN:
        raise RelayoutError(f"like: no operator {full_name(domain, name)} is known")
    _add([facts_like(known, name, domain=facts, op_type=op_type)])


def _add(declared: Sequence[OpFacts]) -> None:
    """An operator that is known already is refused, so that no two facts contradict each other."""
    added: dict[tuple[str, str], OpFacts] = {}
    for facts in declared:
        if isinstance(facts.op_types, str):
            raise RelayoutError(f"op_types is a tuple of names, not the string {facts.op_types!r}")
        for op_type in facts.op_types:
            key = _unnamed(facts.domain), op_type
            if (added.get(key) or FACTS.get(key) or facts) is not facts:
                raise RelayoutError(f"operator {full_name(*key)} is known already")
            added[key] = facts
    FACTS.update(added)


def _unnamed(domain: str) -> str:
    """The standard domain has a name too, which nodes leave out."""
    return "" if domain == "ai.onnx" else domain


def _declared_outside(domain: str, op_type: str) -> OpFacts:
    """The facts of another package's operator; packages are looked for only when one is needed."""
    if domain != KERNEL_DOMAIN and GROUP not in _LOADED:
        _LOADED.add(GROUP)
        try:
            _add([facts for point in installed(GROUP) for facts in _declared(point)])
        except RelayoutError:
            _LOADED.remove(GROUP)
            raise
    return FACTS.get((domain, op_type), UNKNOWN)


_LOADED: set[str] = set()


def _declared(point: EntryPoint) -> list[OpFacts]:
    """The facts that an entry point names, or that the function it names returns."""
    value, plugin = loaded(point), plugin_of(point)
    try:
        given = value() if callable(value) else value
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise RelayoutError(f"{plugin} cannot give its operators: {reason}") from error
    found = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(facts, OpFacts) for facts in found):
        raise RelayoutError(f"{plugin} gives no OpFacts")
    return found
