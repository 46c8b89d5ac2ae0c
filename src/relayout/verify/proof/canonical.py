"""A constant in the form in which it is compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Canonical:
    """A constant in the one order of axes in which it is compared.

    `places` tells, by axis as given, which axis it is here; None if nothing changes along it.
    """

    dtype: str
    shape: tuple[int, ...]
    digest: bytes
    places: tuple[int | None, ...]
