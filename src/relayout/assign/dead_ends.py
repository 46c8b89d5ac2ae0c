"""Shuffles that lead nowhere are no candidates.

No copy leads from a shuffle to another order. So a tensor can be stored in one only if its producer
can write it so and every consumer can read it so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from relayout.assign.drafts import Draft, VariantForm
from relayout.assign.frames import Frame, Tensor

_Shuffles: TypeAlias = dict[ir.Value, set[int]]
"""By tensor, the places of some of its shuffles among its candidates."""


def drop_dead_ends(
    drafts: Sequence[Draft], tensors: Mapping[ir.Value, Tensor], outputs: Sequence[Frame]
) -> None:
    """Leave only the shuffles that all who touch a tensor can take, and the variants with them."""
    given = {value: tensor.shuffles for value, tensor in tensors.items() if tensor.shuffles}
    touching = [draft for draft in drafts if any(f.tensor in given for f in _frames(draft))]
    made = {frame.tensor for draft in touching for frame in draft.results}
    shown = {frame.tensor for frame in outputs}
    alive = {v: set(p) if v in made and v not in shown else set() for v, p in given.items()}
    while True:
        count = sum(map(len, alive.values()))
        for draft in touching:
            _keep_variants(draft, given, alive)
            _keep_shuffles(draft, alive)
        if sum(map(len, alive.values())) == count:
            break
    _renumber(touching, tensors, {value: given[value] - alive[value] for value in given})


def _frames(draft: Draft) -> list[Frame]:
    return [*draft.operands, *draft.results]


def _ports(form: VariantForm) -> tuple[int, ...]:
    (reads, writes), _ = form
    return reads + writes


def _keep_variants(draft: Draft, given: _Shuffles, alive: _Shuffles) -> None:
    dead = [given.get(f.tensor, set()) - alive.get(f.tensor, set()) for f in _frames(draft)]
    for form in list(draft.variants):
        if any(place in places for place, places in zip(_ports(form), dead, strict=True)):
            del draft.variants[form]


def _keep_shuffles(draft: Draft, alive: _Shuffles) -> None:
    """A shuffle that no variant has at some port of the tensor is dead."""
    for port, frame in enumerate(_frames(draft)):
        if frame.tensor in alive:
            alive[frame.tensor] &= {_ports(form)[port] for form in draft.variants}


def _renumber(drafts: Sequence[Draft], tensors: Mapping[ir.Value, Tensor], dead: _Shuffles) -> None:
    """Take dead candidates out of their tensors, and number the others anew."""
    numbers: dict[ir.Value, dict[int, int]] = {}
    for value, places in dead.items():
        kept = [place for place in range(len(tensors[value].orders)) if place not in places]
        tensors[value].keep(kept)
        numbers[value] = {place: index for index, place in enumerate(kept)}
    for draft in drafts:
        draft.variants = {
            _renumbered(draft, form, numbers): transport
            for form, transport in draft.variants.items()
        }


def _renumbered(
    draft: Draft, form: VariantForm, numbers: Mapping[ir.Value, Mapping[int, int]]
) -> VariantForm:
    (reads, writes), lacks_kernel = form
    read = _places(draft.operands, reads, numbers)
    return (read, _places(draft.results, writes, numbers)), lacks_kernel


def _places(
    frames: Sequence[Frame], places: Sequence[int], numbers: Mapping[ir.Value, Mapping[int, int]]
) -> tuple[int, ...]:
    pairs = zip(frames, places, strict=True)
    return tuple(numbers.get(frame.tensor, {}).get(place, place) for frame, place in pairs)
