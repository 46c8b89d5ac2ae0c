"""Certificates of results: made, and checked against the models at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.assign.choose import ChooseLayouts
from relayout.assign.claim import Round, claim, faults, rounds_of
from relayout.assign.encoding import Json
from relayout.assign.formulate import formulate
from relayout.assign.part import parts_of
from relayout.assign.problem import LayoutProblem
from relayout.assign.terms import Terms
from relayout.graph.io.digest import ModelDigest, digest_of
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.graph.io.sources import ModelSource
from relayout.graph.io.version import __version__
from relayout.optimizer.pipeline import learn_shapes, prepared
from relayout.optimizer.prepare import as_editable

if TYPE_CHECKING:
    from relayout.verify.proof.verdict import ModelProof

NAMES = {"given": "given model", "written": "result"}
"""What the certificate has hashes of, and how it is called in reports."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A round that led to the result: the model it was given, and what was chosen for it."""

    given: LoadedModel
    is_edited: bool
    """Whether that is the model as a round before left it, and not as it was read."""
    choose: ChooseLayouts
    by_factors: bool
    """Whether operators worked on the factors of merged axes."""
    opset: int | None
    """That the model was brought to, or has."""
    fixed_defaults: bool
    """Whether inputs with defaults were to be made constants."""

    @property
    def digest(self) -> ModelDigest:
        message = to_proto(self.given) if self.is_edited else self.given.given
        return digest_of(message, self.given.files)

    def stated(self, digest: ModelDigest) -> Round:
        """What is claimed of the model of this round."""
        settings = {
            **self.choose.terms.settings,
            "opset": self.opset,
            "fix_defaults": self.fixed_defaults,
            "by_factors": self.by_factors,
        }
        return Round(digest.sha256, settings, self.choose.decisions)


def certificate_of(
    rounds: Sequence[Taken], written: ModelDigest, proof: ModelProof | None
) -> dict[str, Json]:
    """The claim about a result, for `check_certificate`; `proof` is that it is what was given."""
    digests = [each.digest for each in rounds]
    about = {
        "relayout": __version__,
        "given": digests[0].to_json(),
        "written": written.to_json(),
        **({"equivalence": _equivalence(proof)} if proof is not None and proof.holds else {}),
    }
    stated = [each.stated(digest) for each, digest in zip(rounds, digests, strict=True)]
    return claim(stated, about)


def check_certificate(
    document: Any, model: ModelSource | None = None, result: ModelSource | None = None
) -> list[str]:
    """What is wrong with a certificate; nothing if it holds.

    `model` is the given model, `result` the one that was made of it. With them at hand their hashes
    must be the certified ones, and the layout problems of rounds that are about them are stated
    anew and must be the certified ones. Of other rounds only the proofs themselves are checked.
    With both files at hand, that they compute the same is proved anew, if the certificate says so.
    """
    rounds = rounds_of(document)
    sources = {"given": model, "written": result}
    at_hand = {which: load(source) for which, source in sources.items() if source is not None}
    digests = {which: digest_of(each.given, each.files) for which, each in at_hand.items()}
    mismatches = list(_mismatches(document, digests))
    if mismatches:
        return mismatches
    if model is not None and rounds[0].get("model") != digests["given"].sha256:
        return ["its first round is not about the given model"]
    by_hash = {digests[which].sha256: loaded for which, loaded in at_hand.items()}
    found = [fault for each in rounds for fault in _round_faults(each, by_hash)]
    return [*found, *_equivalence_faults(document.get("equivalence"), model, result, rounds)]


def _equivalence(proof: ModelProof) -> dict[str, Json]:
    return {
        "finding": "equal modulo ledger" if proof.ledger else "identical",
        "ledger": dict(proof.ledger.steps),
        "conditions": list(proof.conditions),
    }


def _equivalence_faults(
    stated: Json, model: ModelSource | None, result: ModelSource | None, rounds: Sequence[Any]
) -> list[str]:
    """What is wrong with the claim that both files compute the same."""
    if stated is None or not isinstance(model, str | Path) or not isinstance(result, str | Path):
        return []
    settings = rounds[0].get("settings")
    fixes = isinstance(settings, dict) and settings.get("fix_defaults") is True
    from relayout.verify.proof.attempt import attempted

    proof = attempted(Path(model), Path(result), fix_defaults=fixes)
    if not proof.holds or _equivalence(proof) != stated:
        return [
            f"that both models compute the same is claimed otherwise than proved: {proof.summary()}"
        ]
    return []


def _mismatches(document: Mapping[str, Json], digests: Mapping[str, ModelDigest]) -> Iterator[str]:
    for which, digest in digests.items():
        if document.get(which) != digest.to_json():
            yield f"the {NAMES[which]} has another hash than the certificate states"


def _round_faults(one: Mapping[str, Json], by_hash: Mapping[str, LoadedModel]) -> list[str]:
    loaded = by_hash.get(str(one.get("model")))
    if loaded is None:
        return faults(one)
    settings = one.get("settings")
    if not isinstance(settings, dict):
        return ["the certificate does not state the settings it was made with"]
    return faults(one, _problems(loaded, settings))


def _problems(loaded: LoadedModel, settings: Mapping[str, Json]) -> list[LayoutProblem]:
    """The layout problems of a model under the settings of a certificate."""
    opset, fixes = settings.get("opset"), settings.get("fix_defaults") is True
    asked = as_editable(loaded, opset if isinstance(opset, int) else None, fix_defaults=fixes)
    terms = Terms.of_settings(settings)
    simplified = learn_shapes(asked.ir)
    prepared(terms.target, by_factors=settings.get("by_factors") is True).run(simplified)
    return [formulate(part, terms, kinds=False).problem for part in parts_of(simplified)]
