"""A proof that is tried: whatever stops it, it is only not proved."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from relayout.verify.proof.proof import Foreseen, prove
from relayout.verify.proof.verdict import ModelProof


def foreseen(before: Path, new: Container[str], *, fix_defaults: bool = False) -> Foreseen | None:
    """What a proof will read of the first model; nothing if that is of no avail."""
    try:
        return Foreseen.of(before, new, fix_defaults=fix_defaults)
    except Exception:  # noqa: BLE001 - the proof meets the same, and reports it
        return None


def attempted(
    before: Path, after: Path, *, fix_defaults: bool = False, begun: Foreseen | None = None
) -> ModelProof:
    """As `prove`; a fault of the proof's own is a reason why nothing is proved.

    With `fix_defaults` inputs that have defaults are constants in both models.
    """
    try:
        return prove(before, after, fix_defaults=fix_defaults, foreseen=begun)
    except Exception as error:  # noqa: BLE001 - the models are judged by numbers then, and it is told
        return ModelProof((), not_known=(f"the proof stopped: {type(error).__name__}: {error}",))
