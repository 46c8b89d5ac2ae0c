"""Groups the operators of a model into kernels: read, grouped, verified, written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

import onnx
import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.fusion.border import operands_of, results_of
from relayout.fusion.dump import dump
from relayout.fusion.emit import emit
from relayout.fusion.group_records import group_records, node_records, refusal_records
from relayout.fusion.groups import Limits, Mode, Partition
from relayout.fusion.partition import partition, unfused
from relayout.fusion.traffic import traffic_of
from relayout.graph.collector import paused_collector
from relayout.graph.io.inline import inlined
from relayout.graph.io.load import load, reloaded
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.sources import BINARY, ModelSource, encoded
from relayout.graph.region import regions_of
from relayout.ops.measure import runs_of
from relayout.optimizer.delivery import Comparing, Delivery, Stage, check_names, deliver
from relayout.optimizer.describe import assumed_for
from relayout.optimizer.pipeline import learn_shapes
from relayout.optimizer.result import at_a_prompt, verdict_text
from relayout.report.fusion import FusionRecord, Kernels, NodeRecord
from relayout.report.records import Assumed
from relayout.verify.isolated import compare_isolated
from relayout.verify.verdict import NumericOptions, NumericVerdict

FAITHFUL: Mode = "tvm"
UNFUSED = "unfused"
DEFAULT_MODE: Mode = "relayout"
MODES: Mapping[Mode, str] = {
    DEFAULT_MODE: "fewest bytes to and from memory",
    FAITHFUL: "the groups TVM would make",
}
"""A line about each mode."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A model without groups, and the groups that were chosen for it."""

    flat: LoadedModel
    mode: Mode
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


@dataclass(frozen=True, slots=True, repr=False)
class FuseResult:
    """What was done to the groups of a model, and the model that was made."""

    loaded: LoadedModel
    """As it was given."""
    made: LoadedModel
    grouping: Grouping
    changed: bool
    delivery: Delivery

    @property
    def accepted(self) -> bool:
        """Whether the model may be used: unchanged, verified, or not asked to be verified."""
        return not self.delivery.refused

    @property
    def model(self) -> onnx.ModelProto:
        """The model with its groups; the given one if verification failed."""
        return self.made.source if self.accepted else self.loaded.source

    @property
    def verdict(self) -> NumericVerdict | None:
        """None where there was nothing to compare, or no comparison was asked for."""
        return self.delivery.verdict

    @property
    def output(self) -> Path | None:
        """Where the model was written."""
        return self.delivery.output

    @property
    def figures(self) -> Mapping[str, Kernels]:
        """What the model costs "unfused", by the groups of "tvm", and by those of its mode."""
        return self.grouping.figures

    def record(self) -> FusionRecord:
        """What is reported."""
        grouping, verdict = self.grouping, self.verdict
        return FusionRecord(
            source="" if self.loaded.path is None else str(self.loaded.path),
            output=None if self.output is None else str(self.output),
            mode=grouping.mode,
            changed=self.changed,
            figures=dict(grouping.figures),
            groups=group_records(grouping.flat, grouping.partitions),
            refusals=refusal_records(grouping.partitions),
            assumed=grouping.assumed(),
            notices=tuple(dict.fromkeys((*self.loaded.notices, *self.made.notices))),
            verdict=verdict_text(verdict, changed=self.changed),
            verified=not self.changed or (verdict is not None and verdict.equal),
            seconds=grouping.seconds,
        )

    def __repr__(self) -> str:
        kernels = ", ".join(f"{way} {each.kernels}" for way, each in self.figures.items())
        verdict = at_a_prompt(verdict_text(self.verdict, changed=self.changed))
        return f"<FuseResult kernels: {kernels or 'none chosen'}; {verdict}>"


def fuse(
    source: ModelSource,
    output: str | PathLike[str] | None = None,
    *,
    mode: str = DEFAULT_MODE,
    level: int = 1,
    max_depth: int = 256,
    max_args: int = 0,
    inline: bool = False,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    stage: Stage = lambda _: None,
    comparing: Comparing = compare_isolated,
) -> FuseResult:
    """Group the operators of a model into kernels, compare the numbers, write it to `output`.

    Each group of two or more operators becomes a call of a function of the model in the domain
    "relayout.fused". `mode` is "relayout" or "tvm"; `level` 0 leaves every operator alone,
    `max_depth` and `max_args` limit the operators and the arguments of a group (0: no limit on
    arguments). A model that has groups already is grouped anew; `inline` only takes them apart,
    which gives back exactly the model they were made of.

    Nothing is written if the numbers differ or cannot be compared.
    """
    inputs = inputs or NumericOptions()
    limits = Limits(level, max_depth, max_args)
    stage("reading")
    loaded = load(source)
    check_names(loaded, inputs)
    stage("grouping")
    with paused_collector():
        grouping = _grouping(loaded, mode_of(mode), None if inline else limits, inputs.dims)
        flat = grouping.flat
        message = emit(flat, grouping.partitions) if grouping.partitions else flat.source
    made = replace(flat, source=message, editable=None)
    changed = _differ(loaded.source, message)
    place = None if output is None else Path(output)
    compared = inputs if verify else None
    delivery = deliver(loaded, made, place, compared, stage, changed=changed, comparing=comparing)
    return FuseResult(loaded, made, grouping, changed, delivery)


def explain(
    source: ModelSource, node: str, *, mode: str = DEFAULT_MODE, limits: Limits | None = None
) -> tuple[NodeRecord, ...]:
    """The group of a node, and why its neighbours are not in that group."""
    grouping = _grouping(_open(source), mode_of(mode), limits or Limits())
    found = node_records(grouping.flat, grouping.partitions, node)
    if not found:
        raise RelayoutError(f"the model has no node {node!r}, and none that writes such a value")
    return found


def listing(source: ModelSource, *, limits: Limits | None = None) -> str:
    """The forward graph of each graph of a model, in the form of the founding document."""
    flat = _flattened(_open(source))
    learn_shapes(flat.ir)
    regions = list(regions_of(flat.ir))
    texts = [dump(region, limits or Limits()) for region in regions]
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"{r.graph.name}:\n{text}" for r, text in zip(regions, texts, strict=True))


def mode_of(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise RelayoutError(f"unknown mode {name!r}; the modes are {', '.join(MODES)}")


def _open(source: ModelSource) -> LoadedModel:
    loaded = load(source)
    if loaded.frozen is not None:
        raise RelayoutError(f"the model may only be copied: {loaded.frozen}")
    return loaded


def _grouping(
    loaded: LoadedModel, mode: Mode, limits: Limits | None, dims: Mapping[str, int] | None = None
) -> Grouping:
    """The groups of a model within limits; without limits only those it has are taken apart."""
    if loaded.frozen is not None:
        loaded.notices.append(f"copied as it is: {loaded.frozen}")
        return Grouping(loaded, mode)
    flat = _flattened(loaded)
    if limits is None or flat.frozen is not None:
        return Grouping(flat, mode)
    learn_shapes(flat.ir)
    since = time.perf_counter()
    regions = list(regions_of(flat.ir))
    chosen = tuple(partition(region, mode, limits) for region in regions)
    seconds = time.perf_counter() - since
    faithful = [partition(region, FAITHFUL, limits) for region in regions]
    ways = {UNFUSED: [unfused(region) for region in regions], FAITHFUL: faithful, mode: chosen}
    runs = runs_of(regions)
    figures = {way: _kernels(parts, runs, dims or {}) for way, parts in ways.items()}
    return Grouping(flat, mode, chosen, figures, seconds, dims or {})


def _flattened(loaded: LoadedModel) -> LoadedModel:
    """The model without the groups that an earlier run wrote into it."""
    message, notices = inlined(loaded.source)
    if message is loaded.source:
        return loaded
    flat = reloaded(loaded, message)
    flat.notices.extend(notices)
    return flat


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


def _differ(given: onnx.ModelProto, made: onnx.ModelProto) -> bool:
    if made is given or len(made.functions) != len(given.functions):
        return made is not given
    return encoded(given, BINARY) != encoded(made, BINARY)
