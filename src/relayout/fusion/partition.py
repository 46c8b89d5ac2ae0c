"""Chooses which operators of a graph run as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relayout.errors import RelayoutError
from relayout.fusion.faithful import alone, faithful
from relayout.fusion.groups import Abilities, Limits, Partition
from relayout.fusion.improved import improved
from relayout.fusion.relaxed import relaxed
from relayout.fusion.settled import Settled
from relayout.fusion.translate import translate
from relayout.graph.collector import paused_collector
from relayout.graph.region import Region

_Choose: TypeAlias = Callable[[Region, Limits, Settled, Abilities | None], Partition]


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to choose groups."""

    name: str
    summary: str
    choose: _Choose
    keeps_limits: bool = True
    """Whether no group exceeds a limit, even where TVM's own do."""


RELAYOUT = Mode("relayout", "fewest bytes to and from memory", improved)
TVM = Mode("tvm", "the groups that TVM's Relay makes", faithful, keeps_limits=False)
TVM_RELAX = Mode("relax", "the groups that TVM's Relax, the successor of Relay, makes", relaxed)

MODES: Mapping[str, Mode] = {mode.name: mode for mode in (RELAYOUT, TVM, TVM_RELAX)}
"""Every mode, the default first."""


def mode_of(name: str) -> Mode:
    if name not in MODES:
        raise RelayoutError(f"unknown mode {name!r}; the modes are {', '.join(MODES)}")
    return MODES[name]


def partition(
    region: Region,
    mode: str = RELAYOUT.name,
    limits: Limits | None = None,
    abilities: Abilities | None = None,
    settled: Settled | None = None,
) -> Partition:
    """The groups of one graph; the bodies inside it are graphs of their own."""
    with paused_collector():
        choose = mode_of(mode).choose
        return choose(region, limits or Limits(), settled or Settled(), abilities)


def unfused(region: Region, settled: Settled | None = None) -> Partition:
    """Every operator alone."""
    translation = translate(region, settled)
    groups = tuple(alone(node, translation) for node in translation.calls)
    return Partition(region.graph, groups, ahead=translation.settled.ahead)
