"""Whether two models differ by nothing but decisions that rounding flips, or by feedback.

One ArgMax that comes out otherwise changes all that is computed after it, and what a Loop carries
from round to round may amplify rounding without end. So models that differ are compared again
with the decisions of the given run and with what its rounds began with: these become inputs of
both models. Then their results, and those of each round, must agree as usual, and each decision of
the second model must be as good as the given one, for what the given model decided on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from relayout.verify.conditioning import Conditioning, of_model
from relayout.verify.decisions import accepted, decided, decides, decisive
from relayout.verify.difference import (
    MOST_NOISE,
    MOST_NOISE_OF_DECISIONS,
    NOISE_FACTOR,
    STRICT,
    Tolerance,
    widened,
)
from relayout.verify.interface import Port
from relayout.verify.judge import Judge
from relayout.verify.pools import Pools
from relayout.verify.quantisers import bodies_of
from relayout.verify.runtimes import (
    ONNX_RUNTIME,
    ExhaustedError,
    RefusedError,
    Run,
    derived,
    read,
)
from relayout.verify.sites import (
    FIRST_CARRIED,
    Site,
    Turn,
    feed,
    feed_carried,
    lift,
    sites_of,
)
from relayout.verify.verdict import NumericOptions, NumericVerdict, Replayed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface
    from relayout.verify.runtimes import Source


class _NotReplayedError(Exception):
    """Why a difference is more than decisions that rounding flips, or may be."""


@dataclass(frozen=True)
class Decision:
    """A decision of both models: its node in the given one, and the names of its parts."""

    node: onnx.NodeProto
    depth: int
    name: str

    @property
    def label(self) -> str:
        return f"decision/{self.name}"

    @property
    def operands(self) -> list[str]:
        return [f"{self.label}/operand/{i}" for i, name in enumerate(self.node.input) if name]


@dataclass(frozen=True)
class Carried:
    """What a Loop of both models carries from round to round."""

    name: str
    index: int

    @property
    def label(self) -> str:
        return f"carried/{self.name}"

    @property
    def next(self) -> str:
        return f"carried/{self.name}/next"


@dataclass(frozen=True)
class Replay:
    """Two models, and what the first one gives."""

    before: Source
    after: Source
    interface: Interface
    options: NumericOptions
    cases: Sequence[Case]

    def weighed(self, verdict: NumericVerdict) -> NumericVerdict:
        """The verdict on the two models, which is that they are equal if only decisions differ."""
        try:
            replayed = self._replayed()
        except (_NotReplayedError, RefusedError, ExhaustedError) as error:
            return replace(verdict, not_replayed=str(error))
        if replayed is None:
            return verdict
        return replace(verdict, status="equal", worst=None, replayed=replayed)

    def _replayed(self) -> Replayed | None:
        models = read(self.before), read(self.after)
        decisions, carried = common_decisions(*models), common_carried(*models)
        live = decisive(models[0]) - {one.name for one in decisions}
        most = MOST_NOISE_OF_DECISIONS if live else MOST_NOISE
        if not decisions and not carried:
            return None
        records = _recorded(self.before, self.interface, decisions, carried, self.cases)
        script = _Script(
            [one for one in decisions if _is_float(records[0][one.operands[0]])],
            [one for one in carried if _is_float(records[0][one.label])],
        )
        players = [
            _Player.of(source, self.interface, script, records[0], most)
            for source in (self.before, self.after)
        ]
        scenes = [
            replace(
                case,
                feeds={**case.feeds, **{name: record[name] for name in script.fed}},
                results=[*case.results, *(record[one.next] for one in script.carried)],
            )
            for case, record in zip(self.cases, records, strict=True)
        ]
        self._check_results(players, script, scenes)
        touched = self._touched(script)
        counts = [
            _flips(players, script.decisions, record, scene, touched)
            for scene, record in zip(scenes, records, strict=True)
        ]
        return Replayed(sum(one for one, _ in counts), sum(flipped for _, flipped in counts))

    def _touched(self, script: _Script) -> set[str]:
        """The inputs that are changed to see what rounding does; decisions are not among them."""
        given = {name for case in self.cases for name in case.feeds}
        return given | {one.label for one in script.carried}

    def _check_results(
        self, players: Sequence[_Player], script: _Script, scenes: Sequence[Case]
    ) -> None:
        """See that both models compute the same from the same decisions."""
        ports = [Port(f"{one.name} of a round", "tensor") for one in script.carried]
        interface = replace(self.interface, outputs=(*self.interface.outputs, *ports))
        count = len(interface.outputs)
        given, made = players
        noise = given.conditioning(self._touched(script)).first(count)
        runtime = replace(ONNX_RUNTIME, open=lambda _source, _interface: made.first(count))
        judge = Judge(runtime, given.first(count), interface, self.options, noise)
        verdict = judge.judge(self.after, scenes)
        if not verdict.equal:
            raise _NotReplayedError(f"with the same decisions {verdict.reason or verdict.worst}")


@dataclass(frozen=True)
class _Script:
    """What both models are given."""

    decisions: Sequence[Decision]
    carried: Sequence[Carried]

    @property
    def fed(self) -> list[str]:
        return [one.label for one in (*self.decisions, *self.carried)]


def common_carried(before: onnx.ModelProto, after: onnx.ModelProto) -> list[Carried]:
    """What Loops of both models carry under the same name and change."""
    given, made = _carried_of(before.graph), _carried_of(after.graph)
    return [
        Carried(name, port.index)
        for name, port in given.items()
        if name in made and made[name].index == port.index
    ]


@dataclass(frozen=True)
class _CarriedPort:
    turns: tuple[Turn, ...]
    index: int


def _carried_of(graph: onnx.GraphProto) -> dict[str, _CarriedPort]:
    found: list[tuple[str, _CarriedPort]] = []
    for site in sites_of(graph):
        if site.node.op_type != "Loop":
            continue
        (body,) = bodies_of(site.node)
        turns = (*site.turns, Turn(site.graph, site.node, body))
        for i, port in enumerate(body.input[FIRST_CARRIED:]):
            if body.output[1 + i].name != port.name:
                found.append((port.name, _CarriedPort(turns, i)))
    names = Counter(name for name, _ in found)
    return {name: port for name, port in found if names[name] == 1}


def common_decisions(before: onnx.ModelProto, after: onnx.ModelProto) -> list[Decision]:
    """The decisions that both models make under the same name, in the same kind of place."""
    given, made = _by_name(before.graph), _by_name(after.graph)
    return [
        Decision(site.node, len(site.turns), name)
        for name, site in given.items()
        if name in made and _key(made[name]) == _key(site)
    ]


def _key(site: Site) -> tuple[str, ...]:
    return site.node.op_type, *(turn.node.op_type for turn in site.turns)


def _by_name(graph: onnx.GraphProto) -> dict[str, Site]:
    """The decisions of a graph and its bodies, by the name of their result if it is the only one."""
    sites = [site for site in sites_of(graph) if decides(site.node)]
    sites = [site for site in sites if len(site.node.output) > decided(site.node)]
    names = Counter(site.node.output[decided(site.node)] for site in sites)
    return {
        name: site
        for site in sites
        if names[name := site.node.output[decided(site.node)]] == 1 and name
    }


def _recorded(
    source: Source,
    interface: Interface,
    decisions: Sequence[Decision],
    carried: Sequence[Carried],
    cases: Sequence[Case],
) -> list[dict[str, Any]]:
    """By case, what the given model decides and carries, and what it reads for decisions."""
    model = read(source)
    sites, ports = _by_name(model.graph), _carried_of(model.graph)
    for one in carried:
        lift(model.graph, ports[one.name].turns, one.name, one.label)
        _lift_next(model.graph, ports[one.name], one)
    for decision in decisions:
        site = sites[decision.name]
        lift(model.graph, site.turns, decision.name, decision.label)
        _lift_operands(model.graph, site, decision)
    run = ONNX_RUNTIME.load(derived(model, source), interface)
    names = [value.name for value in model.graph.output]
    return [dict(zip(names, run(case.feeds), strict=True)) for case in cases]


def _is_float(value: Any) -> bool:
    """Whole numbers, as in arithmetic on lengths, have no rounding to replay."""
    return isinstance(value, np.ndarray) and value.dtype.name in STRICT


def _lift_next(graph: onnx.GraphProto, port: _CarriedPort, one: Carried) -> None:
    lift(graph, port.turns, port.turns[-1].body.output[1 + port.index].name, one.next)


def _lift_operands(graph: onnx.GraphProto, site: Site, decision: Decision) -> None:
    read_names = [name for name in site.node.input if name]
    for name, label in zip(read_names, decision.operands, strict=True):
        lift(graph, site.turns, name, label)


@dataclass(frozen=True)
class _Player:
    """A model that is given its decisions, and shows what it decides on and would decide."""

    source: Source
    interface: Interface
    names: tuple[str, ...]
    run: Run
    most: float
    """The largest change, relative to the scale, that is taken for rounding."""

    @classmethod
    def of(
        cls,
        source: Source,
        interface: Interface,
        script: _Script,
        record: Mapping[str, Any],
        most: float,
    ) -> _Player:
        model = read(source)
        sites, ports = _by_name(model.graph), _carried_of(model.graph)
        for one in script.carried:
            _lift_next(model.graph, ports[one.name], one)
            feed_carried(model.graph, ports[one.name].turns, one.index, one.label)
        for decision in script.decisions:
            site = sites[decision.name]
            element = onnx.helper.np_dtype_to_tensor_dtype(record[decision.label].dtype)
            # Operands first: one decision may be what another one reads.
            _lift_operands(model.graph, site, decision)
            own = feed(model.graph, site, decided(site.node), decision.label, element)
            lift(model.graph, site.turns, own, f"{decision.label}/own/all")
        changed = derived(model, source)
        names = tuple(value.name for value in model.graph.output)
        return cls(changed, interface, names, ONNX_RUNTIME.load(changed, interface), most)

    def first(self, count: int) -> Run:
        return lambda feeds: self.run(feeds)[:count]

    def conditioning(self, given: set[str]) -> Conditioning:
        """How rounding changes its results; decisions are not touched."""
        return of_model(self.run, self.source, self.interface, given, self.most)


def _flips(
    players: Sequence[_Player],
    decisions: Sequence[Decision],
    record: Mapping[str, Any],
    case: Case,
    given: set[str],
) -> tuple[int, int]:
    """How many decisions there are, and how many the second model makes otherwise, as well."""
    made = dict(zip(players[1].names, players[1].run(case.feeds), strict=True))
    others = {one.name: made[f"{one.label}/own/all"] for one in decisions}
    flipped = [
        one for one in decisions if not np.array_equal(record[one.label], others[one.name])
    ]
    slack = _slack(players[0], flipped, record, case, given) if flipped else {}
    for one in flipped:
        operands = [record[name] for name in one.operands]
        room = [slack[name] for name in one.operands]
        for parts in _rounds(one.depth, [record[one.label], others[one.name], *operands, *room]):
            own, other, *rest = parts
            half = len(rest) // 2
            if not accepted(one.node, rest[:half], rest[half:], own, other):
                raise _NotReplayedError(f"decision '{one.name}' is another one, not by rounding")
    total = sum(np.size(record[one.label]) for one in decisions)
    return total, sum(_count(record[one.label], others[one.name]) for one in flipped)


def _count(own: Any, other: Any) -> int:
    return int(np.sum(own != other)) if own.shape == other.shape else abs(len(own) - len(other))


def _rounds(depth: int, arrays: Sequence[Any]) -> list[Sequence[Any]]:
    """The parts of arrays that belong to one round each."""
    if depth == 0:
        return [arrays]
    count = min(len(array) for array in arrays)
    return [
        part for i in range(count) for part in _rounds(depth - 1, [array[i] for array in arrays])
    ]


def _slack(
    player: _Player,
    decisions: Sequence[Decision],
    record: Mapping[str, Any],
    case: Case,
    given: set[str],
) -> dict[str, Any]:
    """By what was read for decisions, by how much rounding may change each element of it."""
    names = [name for one in decisions for name in one.operands]
    noise: dict[str, Any] = dict.fromkeys(names)
    for results in player.conditioning(given).results(case.feeds):
        found = dict(zip(player.names, results, strict=True))
        noise = {name: widened(noise[name], record[name], found[name], player.most) for name in names}
    return {name: _room(record[name], noise[name]) for name in names}


def _room(value: Any, noise: Any) -> Any:
    if value.dtype.name not in STRICT:
        return np.zeros(value.shape)
    wide = value.astype(np.float64)
    pools = Pools.of(wide)
    room = Tolerance(STRICT).of(value.dtype) * pools.scale(wide)
    return room if noise is None else np.maximum(room, NOISE_FACTOR * pools.shared(noise))
