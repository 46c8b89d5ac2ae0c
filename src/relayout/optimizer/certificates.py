"""Whether a certificate holds, and is about a model."""

from __future__ import annotations

from typing import Any

from relayout.assign.claim import faults
from relayout.assign.formulate import Terms, formulate
from relayout.assign.part import parts_of
from relayout.graph.io.sources import ModelSource
from relayout.optimizer.pipeline import (
    learn_shapes,
    prepared,
)
from relayout.optimizer.prepare import opened


def check_certificate(document: Any, model: ModelSource | None = None) -> list[str]:
    """What is wrong with a certificate; nothing if it holds.

    With the given model at hand, its layout problems are stated anew and must be the certified
    ones; without it only the proofs themselves are checked.
    """
    if model is None:
        return faults(document)
    settings = document.get("settings") if isinstance(document, dict) else None
    if not isinstance(settings, dict):
        return ["the certificate does not state the settings it was made with"]
    opset, fixes = settings.get("opset"), settings.get("fix_defaults") is True
    loaded = opened(model, opset=opset if isinstance(opset, int) else None, fix_defaults=fixes)
    terms = Terms.of_settings(settings)
    learn_shapes(loaded.ir)
    prepared(terms.target, by_factors=settings.get("by_factors") is True).run(loaded.ir)
    problems = [formulate(part, terms).problem for part in parts_of(loaded.ir)]
    return faults(document, problems)
