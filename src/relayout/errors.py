"""Errors that are the user's business: one clear line each."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 120


class RelayoutError(Exception):
    """Something the user can read and act on; its text is one line."""


class BadModelError(RelayoutError):
    """The given model is not valid, or not safe to open."""


class VerificationError(RelayoutError):
    """What was made computes something else than the given model, or that cannot be excluded."""


def missing(what: str, extra: str) -> RelayoutError:
    """What needs a package that is not there, with the command that installs it."""
    return RelayoutError(f"{what}: pip install 'relayout[{extra}]'")


def near(name: str, known: Iterable[str | None]) -> str:
    """What was perhaps meant, as the end of a refusal."""
    found = get_close_matches(name, [each for each in known if each])
    return f"; near it: {', '.join(found)}" if found else ""


def quoted(name: object) -> str:
    """A name out of a file, made safe to print: quoted, escaped, of bounded length."""
    text = repr(name)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...{text[0]}"
