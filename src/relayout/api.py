"""What users of the package call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from relayout.assign.layouts import ChooseLayouts
from relayout.describe import figures, model_record, transpose_records
from relayout.errors import RelayoutError
from relayout.graph.invariants import Interface
from relayout.graph.load import load
from relayout.graph.measure import Measure, Objective, measure
from relayout.graph.model import LoadedModel
from relayout.graph.save import Staged, staged, to_proto
from relayout.graph.sources import ModelSource
from relayout.pipeline import Checking, Outcome, Timing, layouts
from relayout.report.records import ModelRecord, RunRecord
from relayout.targets.target import target_of
from relayout.verify.isolated import compare_isolated
from relayout.verify.verdict import NumericOptions, NumericVerdict

Stage = Callable[[str], None]
"""Is told what is being done now."""

NOT_VERIFIED = "not verified, as asked"
SAME_FILE = "the same model"


@dataclass(frozen=True, slots=True)
class Result:
    """What an optimisation did, and the model it made."""

    loaded: LoadedModel
    output: Path | None
    target: str
    before: Measure
    after: Measure
    outcomes: tuple[Outcome, ...]
    changed: bool
    verdict: NumericVerdict | None
    """None where there was nothing to compare, or nobody asked."""
    seconds: Mapping[str, float]
    dims: Mapping[str, int]

    @property
    def accepted(self) -> bool:
        """Whether the model may be used: it is as it was, or verified, or nobody asked."""
        return not self.changed or self.verdict is None or self.verdict.equal

    @property
    def model(self) -> onnx.ModelProto:
        """The optimised model; the given one where nothing was improved or the verdict is no."""
        if not self.changed or not self.accepted:
            return self.loaded.source
        return to_proto(self.loaded)

    def record(self) -> RunRecord:
        """What there is to tell."""
        applied: Counter[str] = Counter()
        for outcome in self.outcomes:
            applied += outcome.applied
        summary = NOT_VERIFIED if self.verdict is None else self.verdict.summary()
        written = self.accepted and self.output is not None
        return RunRecord(
            source="" if self.loaded.path is None else str(self.loaded.path),
            output=str(self.output) if written else None,
            target=self.target,
            before=figures(self.before),
            after=figures(self.after),
            changed=self.changed,
            applied=dict(applied) if self.changed else {},
            left=transpose_records(self.loaded.ir, self.dims) if self.changed else (),
            notices=tuple(self.loaded.notices),
            verdict=summary if self.changed else SAME_FILE,
            verified=not self.changed or (self.verdict is not None and self.verdict.equal),
            seconds=dict(self.seconds),
        )


def optimize(
    source: ModelSource,
    output: str | PathLike[str] | None = None,
    *,
    target: str = "onnx",
    minimize: str = "bytes",
    budget: float = 10.0,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    stage: Stage = lambda _: None,
) -> Result:
    """Choose the order of every tensor, compare the numbers, write the result to `output`.

    `minimize` is "bytes" (fewest bytes moved by Transposes) or "count" (fewest Transposes); after
    `budget` seconds of choosing the best found is taken.

    Nothing is written if the numbers differ or cannot be compared. A model in which nothing could
    be improved is written as it came, byte for byte.
    """
    inputs = inputs or NumericOptions()
    stage("reading")
    loaded = load(source)
    stage("optimising")
    choose = ChooseLayouts(objective_of(minimize), budget, inputs.dims)
    improved = _improve(loaded, target, choose)
    path = None if output is None else Path(output)
    verdict = _deliver(improved, path, inputs if verify else None, stage)
    return Result(
        loaded,
        path,
        target,
        improved.before,
        improved.after,
        improved.outcomes,
        improved.changed,
        verdict,
        improved.seconds,
        inputs.dims,
    )


def inspect(source: ModelSource, *, dims: Mapping[str, int] | None = None) -> ModelRecord:
    """The interface, the operators and the Transposes of a model."""
    loaded = load(source)
    if loaded.frozen is not None:
        raise RelayoutError(f"the model cannot be looked into: {loaded.frozen}")
    return model_record(loaded, dims or {})


@dataclass(frozen=True, slots=True)
class _Improved:
    loaded: LoadedModel
    before: Measure
    after: Measure
    outcomes: tuple[Outcome, ...]
    changed: bool
    seconds: Mapping[str, float]


def objective_of(name: str) -> Objective:
    try:
        return Objective(name)
    except ValueError:
        known = ", ".join(objective.value for objective in Objective)
        raise RelayoutError(f"unknown objective {name!r}; the objectives are {known}") from None


def _improve(loaded: LoadedModel, target: str, choose: ChooseLayouts) -> _Improved:
    pipeline = layouts(target_of(target), choose)
    if loaded.frozen is not None:
        loaded.notices.append(f"copied as it is: {loaded.frozen}")
        nothing = Measure(0, 0, 0)
        return _Improved(loaded, nothing, nothing, (), False, {})
    before = measure(loaded.ir, choose.dims)
    timing = Timing()
    outcomes = pipeline.run(loaded.ir, [Checking(Interface.of(loaded.ir)), timing])
    after = measure(loaded.ir, choose.dims)
    changed = after.better_than(before, choose.objective)
    return _Improved(
        loaded, before, after if changed else before, tuple(outcomes), changed, timing.seconds
    )


def _deliver(
    improved: _Improved, output: Path | None, inputs: NumericOptions | None, stage: Stage
) -> NumericVerdict | None:
    """Write the result beside its place, compare, and put it in its place if it is right."""
    if output is None and (inputs is None or not improved.changed):
        return None
    with TemporaryDirectory(prefix="relayout-") as folder:
        place = Path(folder) / "after.onnx" if output is None else output
        stage("writing")
        with staged(improved.loaded, place, changed=improved.changed) as file:
            verdict = None
            if improved.changed and inputs is not None:
                stage("comparing numbers")
                verdict = _compare(improved.loaded, file, inputs, Path(folder))
            if output is not None and (verdict is None or verdict.equal):
                file.commit()
    return verdict


def _compare(
    loaded: LoadedModel, file: Staged, inputs: NumericOptions, folder: Path
) -> NumericVerdict:
    if loaded.path is not None:
        return compare_isolated(loaded.path, file.path, inputs)
    given = folder / "before.onnx"
    with staged(loaded, given, changed=False) as original:
        original.commit()
    return compare_isolated(given, file.path, inputs)
