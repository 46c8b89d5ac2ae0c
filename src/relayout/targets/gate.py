"""Which nodes stay as they are given, as the caller asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape

import onnx_ir as ir

from relayout.errors import RelayoutError, near, quoted
from relayout.graph.read import NodeView

DEVICE = "device"
"""The property of a node's metadata that names where it runs."""


def _is_of_rank(view: NodeView, text: str) -> bool:
    return str(view.rank(0)) == text


def _is_on_device(view: NodeView, text: str) -> bool:
    return view.node.metadata_props.get(DEVICE, "").casefold() == text.casefold()


def _is_operator(view: NodeView, text: str) -> bool:
    return view.op_type == text


KINDS: Mapping[str, Callable[[NodeView, str], bool]] = {
    "device": _is_on_device,
    "op": _is_operator,
    "rank": _is_of_rank,
}


@dataclass(frozen=True, slots=True)
class Gate:
    """Selectors of nodes: `op:LRN`, `rank:3`, `device:cpu`, or the name of a node.

    A name may have the wildcards of file names. A node without a name goes by that of its first
    result.
    """

    selectors: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.selectors)

    def with_names(self, names: Iterable[str]) -> Gate:
        """The gate, with nodes of these very names besides."""
        return Gate((*self.selectors, *map(escape, names)))

    def keeps(self, view: NodeView) -> bool:
        return any(_selects(selector, view) for selector in self.selectors)

    def check(self, views: Iterable[NodeView]) -> list[str]:
        """Refuse names that no node has: they are typing errors.

        Other selectors may be meant for several models; those that select nothing are listed.
        """
        found = list(views) if self.selectors else []
        idle = [each for each in self.selectors if not any(_selects(each, at) for at in found)]
        for name in idle:
            if _kind_of(name) is None:
                hint = near(name, [name_of(view.node) for view in found])
                raise RelayoutError(f"no node is named {quoted(name)}{hint}")
        return idle


def _kind_of(selector: str) -> tuple[Callable[[NodeView, str], bool], str] | None:
    """The test that a selector other than a name applies to a node."""
    kind, colon, text = selector.partition(":")
    return (KINDS[kind], text) if colon and kind in KINDS else None


def _selects(selector: str, view: NodeView) -> bool:
    asked = _kind_of(selector)
    if asked is not None:
        asks, text = asked
        return asks(view, text)
    return fnmatchcase(name_of(view.node), selector)


def name_of(node: ir.Node) -> str:
    """What a node is selected by."""
    return node.name or (node.outputs[0].name if node.outputs else "") or ""
