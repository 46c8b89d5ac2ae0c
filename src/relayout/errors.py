"""Errors that are the user's business: one clear line each."""

from __future__ import annotations

_LONGEST = 120


class RelayoutError(Exception):
    """Something the user can read and act on; its text is one line."""


class BadModelError(RelayoutError):
    """The given model is not valid, or not safe to open."""


class VerificationError(RelayoutError):
    """What was made computes something else than the given model, or that cannot be excluded."""


def quoted(name: object) -> str:
    """A name out of a file, made safe to print: quoted, escaped, of bounded length."""
    text = repr(name)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...{text[0]}"
