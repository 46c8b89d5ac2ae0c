"""Which orders inputs and outputs are asked for, by the names of layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.io.border_layouts import with_border_layouts
from relayout.graph.io.model import LoadedModel
from relayout.graph.read import constant_of, rank_of
from relayout.infer.colours import infer_colours, views_of
from relayout.layout.layout import Layout, channels_first
from relayout.layout.permutation import Permutation

NAMED_RANKS = range(2, 6)
"""The ranks whose channels first layouts have a name."""


def in_asked_layouts(
    loaded: LoadedModel, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> LoadedModel:
    """The model with these inputs and outputs in the layouts asked for, by name."""
    if not inputs and not outputs:
        return loaded
    graph = loaded.ir.graph
    colours = infer_colours(list(views_of(loaded.ir))).colours
    now = {value: colour.layout for value, colour in colours.items()}
    given = [value for value in graph.inputs if constant_of(value) is None]
    return with_border_layouts(
        loaded,
        _orders("input", given, inputs, now),
        _orders("output", [value for value in graph.outputs if value.producer()], outputs, now),
    )


def _orders(
    kind: str,
    values: Sequence[ir.Value],
    asked: Mapping[str, str],
    now: Mapping[ir.Value, Layout | None],
) -> dict[str, Permutation]:
    by_name = {str(value.name): value for value in values}
    found = {}
    for name, layout in asked.items():
        wanted = layout.upper()
        if name not in by_name:
            known = ", ".join(by_name)
            raise RelayoutError(f"the model has no {kind} {name!r}; it has {known}")
        order = _order(kind, by_name[name], wanted, now.get(by_name[name]))
        if not order.is_identity:
            found[name] = order
    return found


def _order(kind: str, value: ir.Value, wanted: str, now: Layout | None) -> Permutation:
    rank = rank_of(value)
    if rank is None:
        raise RelayoutError(f"the number of axes of {kind} {value.name!r} is not known")
    named = now if now is not None and now.rank == rank else None
    if named is None and rank in NAMED_RANKS:
        named = channels_first(rank)
    if named is None or sorted(wanted) != sorted(named.axes):
        fits = f"; it is {named}, in any order of these letters" if named is not None else ""
        raise RelayoutError(f"{kind} {value.name!r} has {rank} axes and cannot be {wanted!r}{fits}")
    return named.to(Layout(wanted))
