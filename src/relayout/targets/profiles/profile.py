"""A profile: the limits of one device, read from a file or shipped with the package."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError
from relayout.graph.read import NodeView, Shape
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.targets.profiles.form import NodeForm, form_of, forms_of
from relayout.targets.profiles.limits import (
    LastAxisLimit,
    Limit,
    MoveLimit,
    PermLimit,
    PlaneLimit,
    RankLimit,
    limit_of,
)

SUFFIX = ".toml"
TRANSPOSE = "Transpose"
FALLS_BACK = 4
"""A Transpose that runs elsewhere is also copied there and back."""
ON_TRANSPOSES = (PermLimit, PlaneLimit, LastAxisLimit, MoveLimit)
KEYS = {"summary", "opset", "interface", "limit"}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The newest opset that is read."""

    most: int
    source: str


@dataclass(frozen=True, slots=True)
class PreferredOrder:
    """The layout of pictures among inputs and outputs for which no copy is made."""

    order: str
    source: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What a device refuses, as values; what is not listed is taken."""

    name: str
    summary: str
    limits: tuple[Limit, ...]
    opset: Ceiling | None = None
    interface: PreferredOrder | None = None

    @property
    def max_rank(self) -> int | None:
        """The axes that every tensor may have."""
        general = (each for each in self.limits if isinstance(each, RankLimit) and not each.op)
        return min((limit.rank for limit in general), default=None)

    @property
    def limits_transposes(self) -> bool:
        """Whether some Transposes fall back and others do not."""
        return any(isinstance(limit, ON_TRANSPOSES) for limit in self.limits)

    def broken(self, form: NodeForm) -> list[tuple[Limit, str]]:
        """The limits that a node breaks, each with the reason."""
        reasons = ((limit, limit.breaks(form)) for limit in self.limits)
        return [(limit, reason) for limit, reason in reasons if reason is not None]

    def times(self, lengths: Shape, order: Permutation) -> int:
        """How often the bytes of a Transpose count: more often where it runs elsewhere."""
        form = NodeForm(TRANSPOSE, operands=(lengths,), perm=order)
        limits = (limit for limit in self.limits if isinstance(limit, ON_TRANSPOSES))
        return FALLS_BACK if any(limit.breaks(form) for limit in limits) else 1

    def refusal(self, view: NodeView, transport: Transport) -> Refusal | None:
        """Why a restated node does not fit where the given one does."""
        known = {limit for limit, _ in self.broken(form_of(view))}
        for form in forms_of(view, transport):
            for limit, reason in self.broken(form):
                if limit not in known:
                    return Refusal(f"{self.name} does not run {form.op_type} so: {reason}")
        return None

    def to_json(self) -> dict[str, Any]:
        """The profile as a certificate writes it down."""
        record: dict[str, Any] = {"name": self.name, "summary": self.summary}
        record["limit"] = [_record(limit) for limit in self.limits]
        if self.opset is not None:
            record["opset"] = asdict(self.opset)
        if self.interface is not None:
            record["interface"] = asdict(self.interface)
        return record


def profile_of(asked: str | PathLike[str] | Profile) -> Profile:
    """A profile by the name of a shipped one, or by the path of a file."""
    if isinstance(asked, Profile):
        return asked
    name = str(asked)
    if name in shipped_names():
        return _shipped(name)
    if not name.endswith(SUFFIX):
        known = ", ".join(shipped_names())
        raise RelayoutError(f"unknown profile {name!r}; there are {known}, or a file *{SUFFIX}")
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RelayoutError(f"cannot read the profile {name!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RelayoutError(f"the profile {name!r} is not TOML: {error}") from None
    return _parsed(path.stem, text)


@cache
def shipped_names() -> tuple[str, ...]:
    """The profiles that come with the package."""
    files = resources.files(__package__ or "").iterdir()
    return tuple(
        sorted(each.name.removesuffix(SUFFIX) for each in files if each.name.endswith(SUFFIX))
    )


@cache
def _shipped(name: str) -> Profile:
    file = resources.files(__package__ or "") / f"{name}{SUFFIX}"
    return _parsed(name, file.read_text(encoding="utf-8"))


def _parsed(name: str, text: str) -> Profile:
    try:
        record = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RelayoutError(f"the profile {name!r} is not TOML: {error}") from None
    return profile_of_record({"name": name, **record})


def profile_of_record(record: Mapping[str, Any]) -> Profile:
    """The profile that plain data states."""
    strange = sorted(set(record) - KEYS - {"name"})
    if strange:
        raise RelayoutError(
            f"a profile has no key {strange[0]!r}; it has {', '.join(sorted(KEYS))}"
        )
    opset, interface = record.get("opset"), record.get("interface")
    try:
        return Profile(
            str(record["name"]),
            str(record.get("summary", "")),
            tuple(map(limit_of, record.get("limit", ()))),
            None if opset is None else Ceiling(**opset),
            None if interface is None else PreferredOrder(**interface),
        )
    except TypeError as error:
        raise RelayoutError(f"the profile {record['name']!r} is not complete: {error}") from None


def _record(limit: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(limit).items() if value != ()}
