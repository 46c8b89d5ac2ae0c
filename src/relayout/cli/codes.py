"""The exit codes of all commands."""

from __future__ import annotations

DONE, REFUSED, BAD_INPUT, FAULT = 0, 1, 2, 3

CODES = {
    DONE: "done, and verified unless --no-verify is given",
    REFUSED: "the verdict is no",
    BAD_INPUT: "bad input or usage, or a place that cannot be written to",
    FAULT: "a fault of relayout's own",
}
"""What each code says. Beyond them 128 + n: signal n ended the command. Files are written only
with code 0."""
