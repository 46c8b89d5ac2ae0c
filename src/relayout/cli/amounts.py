"""What options take besides names: counts, seconds, memory, shapes, lengths and layouts."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError


def count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is not a count")
    return int(text)


def at_least_one(text: str) -> int:
    number = count(text)
    if not number:
        raise ArgumentTypeError("it is at least 1")
    return number


def seconds(text: str) -> float:
    found = _number(text)
    if found is None or found <= 0:
        raise ArgumentTypeError(f"'{text}' is no time; it is given in seconds, more than 0")
    return found


def tolerance(text: str) -> float:
    found = _number(text)
    if found is None or found < 0:
        raise ArgumentTypeError(f"'{text}' is no error that could be allowed, such as 1e-4")
    return found


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def gigabytes(text: str) -> float:
    """An amount of memory: 2GB, 500MB, or a number of gigabytes."""
    upper = text.upper().removesuffix("B")
    scale = {"M": 1e-3, "G": 1.0, "T": 1e3}.get(upper[-1:])
    found = _number(upper if scale is None else upper[:-1])
    if found is None or found <= 0:
        raise ArgumentTypeError(f"'{text}' is not an amount of memory such as 2GB")
    return found * (scale or 1.0)


def named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, lengths = text.rpartition("=")
    try:
        shape = tuple(int(length) for length in lengths.split(",") if length)
    except ValueError:
        shape = (-1,)
    if not name or any(length < 0 for length in shape):
        raise ArgumentTypeError(f"'{text}' is not of the form NAME=1,3,224,224")
    return name, shape


def named_length(text: str) -> tuple[str, int]:
    name, _, length = text.rpartition("=")
    if not name or not length.isdecimal():
        raise ArgumentTypeError(f"'{text}' is not of the form NAME=8")
    return name, int(length)


def named_layout(text: str) -> tuple[str, str]:
    name, _, layout = text.rpartition("=")
    if not name or not layout.isalpha():
        raise ArgumentTypeError(f"'{text}' is not of the form NAME=NHWC")
    return name, layout


def part(text: str) -> tuple[int, int]:
    """One of several parts of all models."""
    number, _, total = text.partition("/")
    known = number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)
    if not known:
        raise ArgumentTypeError(f"'{text}' is not of the form 1/8")
    return int(number), int(total)
