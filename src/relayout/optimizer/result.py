"""What an optimisation did, and the model it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from relayout.assign.choose import ChooseLayouts
from relayout.assign.explain import StatedModel
from relayout.assign.terms import Terms
from relayout.errors import RelayoutError
from relayout.graph.io.digest import digest_of, digest_of_file
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.ops.measure import Measure, bytes_of_constants
from relayout.optimizer.attempts import KEPT
from relayout.optimizer.certificates import Taken, certificate_of
from relayout.optimizer.describe import (
    assumed,
    explained_records,
    figures,
    held_note,
    run_notes,
    size_note,
)
from relayout.optimizer.pipeline import Outcome
from relayout.report.prompt import at_a_prompt
from relayout.report.records import (
    AttemptRecord,
    MeasuredRecord,
    OfferRecord,
    RunRecord,
    TransposeRecord,
)
from relayout.report.text import bytes_text
from relayout.report.trace import Span
from relayout.verify.verdict import NumericVerdict

if TYPE_CHECKING:
    from relayout.report.html.page import Page

NOT_VERIFIED = "not verified, as asked"
SAME_FILE = "the same model"


def verdict_text(verdict: NumericVerdict | None, *, changed: bool) -> str:
    """What is known of the numbers of a model that was made."""
    withheld = withheld_for(verdict, changed=changed)
    if withheld:
        return f"{SAME_FILE}, since what was made of it {withheld}"
    if not changed:
        return SAME_FILE
    if verdict is None:
        return NOT_VERIFIED
    if verdict.status == "unknown":
        return f"cannot be verified, {verdict.reason}; --no-verify writes it anyway"
    return verdict.summary()


def withheld_for(verdict: NumericVerdict | None, *, changed: bool) -> str:
    """Why a model is as it was though something was made of it, which the verdict is on."""
    return "" if changed or verdict is None else verdict_text(verdict, changed=True)


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What an optimisation did, and the model it made."""

    loaded: LoadedModel
    choose: ChooseLayouts
    before: Measure
    after: Measure
    outcomes: tuple[Outcome, ...]
    changed: bool
    seconds: Mapping[str, float]
    verdict: NumericVerdict | None = None
    """None where there was nothing to compare, or no comparison was asked for."""
    output: Path | None = None
    """Where the model was written."""
    lacking: tuple[int, int] = (0, 0)
    """Nodes in an order that the target has no kernel for, before and after."""
    least: bool = False
    """Whether the choice is proved least for the variants offered, and was not given up."""
    rounds: tuple[Taken, ...] = ()
    """What led to the model, first the round that the given model was given to."""
    spelt_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Why attentions are not raised to operators, with the names of their Softmaxes."""
    attempts: tuple[AttemptRecord, ...] = ()
    """What was tried, in that order."""
    offers: tuple[OfferRecord, ...] = ()
    """Options that would leave fewer Transposes, where they were asked for."""
    removed_by: Mapping[str, str] = field(default_factory=dict)
    """By name of a Transpose of the given model, which pass removed it."""
    informed: LoadedModel | None = None
    """The model as given with shapes learned."""
    stated: StatedModel | None = None
    """The result as layout problems, where it was looked at again."""
    measured: MeasuredRecord | None = None
    """How long candidates took in the target's runtime, where that was asked for."""
    spans: tuple[Span, ...] = ()
    """When each pass of each attempt ran, by `time.perf_counter`."""

    @property
    def applied(self) -> Counter[str]:
        """How often each rewrite was applied."""
        return sum((outcome.applied for outcome in self.outcomes), Counter[str]())

    @property
    def accepted(self) -> bool:
        """Whether the model may be used: unchanged, verified, or not asked to be verified."""
        return not self.changed or self.verdict is None or self.verdict.equal

    @property
    def is_unsettled(self) -> bool:
        """Whether verification shows neither that the model is right nor that it is wrong."""
        return self.changed and self.verdict is not None and self.verdict.status == "unknown"

    @property
    def withheld(self) -> str:
        """Why the given model takes the place of what was made of it, if it does."""
        return withheld_for(self.verdict, changed=self.changed)

    def dropped(self, verdict: str) -> tuple[AttemptRecord, ...]:
        """What was tried, with what was kept dropped for a reason that showed later."""
        return tuple(
            replace(each, verdict=verdict) if each.verdict == KEPT else each
            for each in self.attempts
        )

    @property
    def by_factors(self) -> bool:
        """Whether operators worked on the factors of merged axes when layouts were last chosen."""
        return self.chooses and self.rounds[-1].by_factors

    @property
    def chooses(self) -> bool:
        """Whether layouts were chosen at all: not for a model that may only be copied."""
        return bool(self.rounds)

    @property
    def shows_rounding(self) -> bool:
        """Whether numbers differ and quantisers may have turned changed rounding into steps."""
        differs = self.verdict is not None and self.verdict.status == "differs"
        return differs and any(each.formulation.is_quantised for each in self.choose.decisions)

    @property
    def model(self) -> onnx.ModelProto:
        """The optimised model; the given one if nothing was improved or verification failed."""
        if not self.changed or not self.accepted:
            return self.loaded.given
        return to_proto(self.loaded)

    def certificate(self) -> dict[str, Any]:
        """The proof that the choice is least for the variants offered, for `check_certificate`.

        It names the given model and the result by their hashes: of the written file as it is now,
        or of the message where none was written.
        """
        is_file = self.output is not None and self.output.is_file()
        return self.certified(self.output if is_file else None)

    def certified(self, file: Path | None) -> dict[str, Any]:
        """As `certificate`, of a result that is in this file, or else in memory only."""
        if not self.chooses:
            raise RelayoutError("the model was copied as it is, so there is nothing to prove")
        if self.withheld:
            raise RelayoutError("the model is as it was, so there is nothing to prove")
        if not self.choose.proves:
            raise RelayoutError("only the exact strategy proves anything about its choice")
        proof = None if self.verdict is None else self.verdict.proof
        if file is not None:
            return certificate_of(self.rounds, digest_of_file(file), proof)
        return certificate_of(self.rounds, digest_of(self.model, self.loaded.files), proof)

    @property
    def _constant_bytes(self) -> tuple[int, int]:
        """What large constants take in the given model and in this one."""
        if not self.chooses:
            return 0, 0
        given, made = self.rounds[0].given.ir, self.loaded.ir
        return bytes_of_constants(given), bytes_of_constants(made)

    def record(self) -> RunRecord:
        """What is reported."""
        target, dims = self.choose.terms.target, self.choose.terms.dims
        timed = self.choose.terms.prices is not None
        shown = self.loaded if self.changed else self.informed or self.loaded
        applied = self.applied if self.changed else Counter[str]()
        left: tuple[TransposeRecord, ...] = ()
        notes: tuple[str, ...] = ()
        if shown.frozen is None:
            stated = self.stated or StatedModel.of(shown.ir, Terms(target=target, dims=dims))
            left = explained_records(stated.explained(), dims)
            spelt_out = self.spelt_out if self.after.transposes else {}
            notes = run_notes(shown.ir, bool(left), applied, spelt_out, target)
            notes += held_note(shown.ir, target)
        stored, kept = self._constant_bytes
        notes += size_note(kept - stored)
        return RunRecord(
            source="" if self.loaded.path is None else str(self.loaded.path),
            output=None if self.output is None else str(self.output),
            target=target.name,
            before=figures(self.before, timed=timed),
            after=figures(self.after, timed=timed),
            changed=self.changed,
            applied=dict(applied),
            left=left,
            assumed=assumed(shown, dims),
            notices=(*self.loaded.notices, *self.choose.notes, *notes),
            verdict=verdict_text(self.verdict, changed=self.changed),
            verified=not self.changed or (self.verdict is not None and self.verdict.equal),
            optimal=self.least,
            seconds=dict(self.seconds),
            constant_bytes=(stored, kept),
            minimized=self.choose.terms.objective.least,
            lacking=self.lacking,
            attempts=self.attempts,
            offers=self.offers,
            measured=self.measured,
            withheld=self.withheld,
        )

    def page(self) -> Page:
        """The page that `report=PATH` writes; in notebooks it is shown with its graphs."""
        from relayout.optimizer.pages import run_page

        return run_page(self)

    def _repr_html_(self) -> str:
        """A small card for notebooks; `page()` has the graphs."""
        before, after = self.before, self.after
        verdict = verdict_text(self.verdict, changed=self.changed)
        rows = [
            ("Transposes", str(before.transposes), str(after.transposes)),
            ("bytes moved", bytes_text(before.bytes_moved), bytes_text(after.bytes_moved)),
            ("nodes", str(before.nodes), str(after.nodes)),
        ]
        head = "<tr><th></th><th>before</th><th>after</th></tr>"
        cells = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
        return f"<table>{head}{cells}</table><p>{escape(verdict)}</p>"

    def __repr__(self) -> str:
        before, after = self.before.transposes, self.after.transposes
        verdict = at_a_prompt(verdict_text(self.verdict, changed=self.changed))
        return f"<Result {before} -> {after} Transposes; {verdict}>"
