"""Whether two model files are one function: proof, field run and numbers together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

from relayout.errors import BadModelError
from relayout.verify.interface import UnreadableModelError, interface_of
from relayout.verify.isolated import LONGEST, WORKER, default_memory, two_files, verdict_of
from relayout.verify.verdict import NumericOptions, NumericVerdict

Finding = Literal["identical", "equal modulo ledger", "tested", "refuted", "unknown"]
SHOWN = 120
"""Characters of a verdict at a prompt."""
GOOD: tuple[Finding, ...] = ("identical", "equal modulo ledger", "tested")


@dataclass(frozen=True)
class OutputVerdict:
    """What is known of one output, and by what."""

    name: str
    finding: Finding
    reason: str = ""


@dataclass(frozen=True, repr=False)
class Equivalence:
    """What is known of two models, output by output of the first one.

    `identical`: proved to be the same for every input and all lengths from 1 on, where sums count
    as the same in any order. `equal modulo ledger`: proved up to steps that only change rounding,
    which the ledger names. `tested`: not proved; equal in all runs. `refuted`: they differ, and the
    reason says where. `unknown`: nothing could be shown.
    """

    outputs: tuple[OutputVerdict, ...]
    verdict: NumericVerdict

    @property
    def equal(self) -> bool:
        return bool(self.outputs) and all(one.finding in GOOD for one in self.outputs)

    def __repr__(self) -> str:
        return f"<Equivalence {shorten(self.verdict.summary(), SHOWN, placeholder=' ...')}>"

    def record(self) -> dict[str, Any]:
        outputs = [
            {"name": one.name, "finding": one.finding, "reason": one.reason} for one in self.outputs
        ]
        return {"equal": self.equal, "outputs": outputs, "verdict": self.verdict.to_json()}


def verify_models(
    before: str | Path, after: str | Path, numbers: NumericOptions | None = None
) -> Equivalence:
    """Find out whether two model files compute the same, whatever made the second one."""
    options = numbers or NumericOptions()
    paths = Path(before), Path(after)
    for path in paths:
        _check_readable(path)
    request = {**two_files(*paths, options), "field": True}
    verdict = verdict_of(WORKER, request, LONGEST, default_memory(options, *paths))
    return Equivalence(tuple(_findings(verdict)), verdict)


def _check_readable(path: Path) -> None:
    try:
        interface_of(path)
    except UnreadableModelError as error:
        raise BadModelError(str(error)) from error


def _findings(verdict: NumericVerdict) -> list[OutputVerdict]:
    proved = () if verdict.proof is None else verdict.proof.outputs
    names = verdict.output_names or tuple(one.name for one in proved)
    return [_finding(verdict, name) for name in names]


def _finding(verdict: NumericVerdict, name: str) -> OutputVerdict:
    proof, numbers = verdict.proof, verdict.despite or verdict.reason or str(verdict.worst or "")
    proved = proof is not None and any(one.proved for one in proof.outputs if one.name == name)
    field = verdict.field_run.get(name, "")
    if verdict.status == "differs" and verdict.reason:
        return OutputVerdict(name, "refuted", verdict.reason)
    if proof is not None and proved:
        under = f"where {' and '.join(proof.conditions)}" if proof.conditions else ""
        if proof.ledger:
            return OutputVerdict(name, "equal modulo ledger", under)
        if field.startswith("differs"):
            return OutputVerdict(name, "unknown", f"proof and field run contradict: {field}")
        return OutputVerdict(name, "identical", under)
    if name in verdict.failing:
        return OutputVerdict(name, "refuted", numbers)
    if verdict.status == "equal":
        return OutputVerdict(name, "tested", f"field run: {field}" if field else "")
    return OutputVerdict(name, "unknown", numbers)
