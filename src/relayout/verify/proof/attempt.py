"""A proof that is tried: whatever stops it, it is only not proved."""

from __future__ import annotations

from pathlib import Path

from relayout.verify.proof.proof import prove
from relayout.verify.proof.verdict import ModelProof


def attempted(before: Path, after: Path, *, fix_defaults: bool = False) -> ModelProof:
    """As `prove`; a fault of the proof's own is a reason why nothing is proved.

    With `fix_defaults` inputs that have defaults are constants in both models.
    """
    try:
        return prove(before, after, fix_defaults=fix_defaults)
    except Exception as error:  # noqa: BLE001 - the models are judged by numbers then, and it is told
        return ModelProof((), not_known=(f"the proof stopped: {type(error).__name__}: {error}",))
