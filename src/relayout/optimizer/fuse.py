"""Groups the operators of a model into kernels: read, grouped, verified, written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from relayout.errors import RelayoutError
from relayout.fusion.dump import dump
from relayout.fusion.emit import emit
from relayout.fusion.group_records import group_records, node_records, refusal_records
from relayout.fusion.groups import Limits
from relayout.fusion.partition import RELAYOUT
from relayout.graph.collector import paused_collector
from relayout.graph.io.destination import Destination, Document, Output
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.graph.io.sources import BINARY, ModelSource, encoded
from relayout.graph.region import regions_of
from relayout.optimizer.delivery import Comparing, Delivery, Stage, check_names, deliver
from relayout.optimizer.grouping import (
    Grouping,
    GroupingOptions,
    flattened,
    grouping_of,
    no_such_node,
    prepared,
)
from relayout.optimizer.result import verdict_text, withheld_for
from relayout.report.fusion import FusionRecord, Kernels, NodeRecord
from relayout.report.prompt import at_a_prompt
from relayout.verify.isolated import compare_isolated
from relayout.verify.verdict import NumericOptions, NumericVerdict


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
        return not self.changed or not self.delivery.refused

    @property
    def model(self) -> onnx.ModelProto:
        """The model with its groups; the given one if verification failed."""
        return to_proto(self.made) if self.changed and self.accepted else self.loaded.given

    @property
    def verdict(self) -> NumericVerdict | None:
        """None where there was nothing to compare, or no comparison was asked for."""
        return self.delivery.verdict

    @property
    def is_unsettled(self) -> bool:
        """Whether verification shows neither that the model is right nor that it is wrong."""
        return self.changed and self.verdict is not None and self.verdict.status == "unknown"

    def with_delivery(self, delivery: Delivery) -> FuseResult:
        """What became of it; the verdict is on what was made, whatever is written."""
        known = replace(delivery, verdict=delivery.verdict or self.verdict)
        return replace(self, delivery=known)

    @property
    def output(self) -> Path | None:
        """Where the model was written."""
        return self.delivery.output

    @property
    def figures(self) -> Mapping[str, Kernels]:
        """What the model costs unfused, by the groups of TVM, and by those of its mode."""
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
            withheld=withheld_for(verdict, changed=self.changed),
        )

    def __repr__(self) -> str:
        kernels = ", ".join(f"{way} {each.kernels}" for way, each in self.figures.items())
        verdict = at_a_prompt(verdict_text(self.verdict, changed=self.changed))
        return f"<FuseResult kernels: {kernels or 'none chosen'}; {verdict}>"


def fuse(
    source: ModelSource,
    output: Output | None = None,
    *,
    mode: str = RELAYOUT.name,
    level: int = 1,
    max_depth: int = 256,
    max_args: int = 0,
    stop: Sequence[str] = (),
    keep_function: Sequence[str] = (),
    wrap_all: bool = False,
    inline: bool = False,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    ready: Callable[[FuseResult], None] = lambda _: None,
    stage: Stage = lambda _: None,
    comparing: Comparing = compare_isolated,
) -> FuseResult:
    """Group the operators of a model into kernels, compare the numbers, write it to `output`.

    Each group of two or more operators becomes a call of a function of the model in the domain
    "relayout.fused"; with `wrap_all` an operator alone does too. What is computed from constants
    and lengths alone belongs to no group. A model that has groups already is grouped anew;
    `inline` only takes them apart, which gives back exactly the model they were made of.

    `mode` names how groups are chosen (`relayout fuse --help` lists the modes). `level` 0 leaves
    every operator alone, `max_depth` and `max_args` limit the operators and the arguments of a
    group (0: no limit on arguments). `stop` names nodes after which no group goes on, as the
    metadata "relayout.stop_fusion" of a node does; `keep_function` names functions of the model,
    each call of which is a kernel of its own.

    `output` is a path or a binary file open for writing. Nothing is written if the numbers differ.
    Where they cannot be compared and nothing is proved, the model is written as it came, with the
    reason, unless its groups were to be taken apart. `ready` is called with the result before it
    takes its place: if it raises, nothing does.
    """
    inputs = inputs or NumericOptions()
    limits = Limits(level, max_depth, max_args)
    options = GroupingOptions(mode, limits, stop, keep_function, wrap_all)
    place = None if output is None else Destination.of(output)
    stage("reading")
    loaded = load(source)
    check_names(loaded, inputs)
    stage("grouping")
    with paused_collector():
        grouping = _grouping(loaded, options, inputs.dims, inline=inline)
        flat = grouping.flat
        message = emit(flat, grouping.partitions) if grouping.partitions else flat.source
    made = replace(flat, source=message, editable=None)
    changed = _differ(loaded.source, message)

    def delivered(result: FuseResult) -> FuseResult:
        def beside(delivery: Delivery) -> tuple[Document, ...]:
            ready(result.with_delivery(delivery))
            return ()

        delivery = deliver(
            *(loaded, result.made, place, inputs if verify else None, stage),
            changed=result.changed,
            beside=beside,
            comparing=comparing,
        )
        return result.with_delivery(delivery)

    result = delivered(FuseResult(loaded, made, grouping, changed, Delivery()))
    if inline or not result.is_unsettled:
        return result
    as_given = Grouping(loaded, options.mode)
    return delivered(FuseResult(loaded, loaded, as_given, False, result.delivery))


def explain(
    source: ModelSource, node: str, options: GroupingOptions | None = None
) -> tuple[NodeRecord, ...]:
    """The group of a node, and why its neighbours are not in that group."""
    grouping = grouping_of(_open(source), options or GroupingOptions())
    found = node_records(grouping.flat, grouping.partitions, node)
    if not found:
        nodes = [each for region in regions_of(grouping.flat.ir) for each in region.graph]
        raise no_such_node(node, nodes)
    return found


def listing(source: ModelSource, options: GroupingOptions | None = None) -> str:
    """The forward graph of each graph of a model, in the form of the founding document."""
    options = options or GroupingOptions()
    regions, settled = prepared(flattened(_open(source)), options)
    texts = [dump(region, options.limits, settled) for region in regions]
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"{r.graph.name}:\n{text}" for r, text in zip(regions, texts, strict=True))


def _open(source: ModelSource) -> LoadedModel:
    loaded = load(source)
    if loaded.frozen is not None:
        raise RelayoutError(f"the model may only be copied: {loaded.frozen}")
    return loaded


def _grouping(
    loaded: LoadedModel, options: GroupingOptions, dims: Mapping[str, int], *, inline: bool
) -> Grouping:
    """The groups of a model; or none where those it has are only taken apart."""
    if loaded.frozen is not None:
        loaded.notices.append(f"copied as it is: {loaded.frozen}")
        return Grouping(loaded, options.mode)
    if inline:
        return Grouping(flattened(loaded), options.mode)
    return grouping_of(loaded, options, dims)


def _differ(given: onnx.ModelProto, made: onnx.ModelProto) -> bool:
    if made is given or len(made.functions) != len(given.functions):
        return made is not given
    return encoded(given, BINARY) != encoded(made, BINARY)
