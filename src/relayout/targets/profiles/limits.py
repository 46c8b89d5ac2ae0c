"""What a device refuses of a node, one kind of limit a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias

from relayout.errors import RelayoutError
from relayout.graph.read import Shape
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.targets.profiles.form import NodeForm

Operators: TypeAlias = tuple[str, ...]
UNKNOWN = 2
"""A length that is not known counts as one that is moved."""


class Limit(Protocol):
    """Something that a device takes or does not take."""

    @property
    def source(self) -> str:
        """Where that is stated."""
        ...

    def breaks(self, form: NodeForm) -> str | None:
        """Why a node does not fit, or None."""
        ...


@dataclass(frozen=True, slots=True)
class RankLimit:
    """The axes that tensors of some operators, or of all, may have."""

    KEY: ClassVar[str] = "rank"
    rank: int
    source: str
    op: Operators = ()
    without_units: bool = False
    """Whether axes of length 1 do not count."""

    def breaks(self, form: NodeForm) -> str | None:
        if not _is_among(form, self.op):
            return None
        found = max((self._axes(shape) for shape in form.shapes if shape is not None), default=0)
        if found <= self.rank:
            return None
        kind = "axes longer than 1" if self.without_units else "axes"
        return f"a tensor has {found} {kind}, at most {self.rank} are run"

    def _axes(self, shape: Shape) -> int:
        return sum(length != 1 for length in shape) if self.without_units else len(shape)


@dataclass(frozen=True, slots=True)
class AxisLimit:
    """The axes, counted from the end, along which an operator runs."""

    KEY: ClassVar[str] = "axes"
    axes: tuple[int, ...]
    source: str
    op: Operators = ()

    def breaks(self, form: NodeForm) -> str | None:
        axis, shape = form.attributes.get("axis"), form.lead
        if not _is_among(form, self.op) or not isinstance(axis, int) or shape is None:
            return None
        from_the_end = axis if axis < 0 else axis - len(shape)
        if from_the_end in self.axes:
            return None
        return f"it works along axis {axis} of {len(shape)}, only {_listed(self.axes)} is run"


@dataclass(frozen=True, slots=True)
class ValueLimit:
    """The values that an attribute may have."""

    KEY: ClassVar[str] = "attribute"
    attribute: str
    values: tuple[int | float | str, ...]
    source: str
    op: Operators = ()

    def breaks(self, form: NodeForm) -> str | None:
        value = form.attributes.get(self.attribute)
        if not _is_among(form, self.op) or value is None or value in self.values:
            return None
        return f"its {self.attribute} is {value}, only {_listed(self.values)} is run"


@dataclass(frozen=True, slots=True)
class PermLimit:
    """The permutations that Transposes of large tensors may have."""

    KEY: ClassVar[str] = "perms"
    perms: tuple[tuple[int, ...], ...]
    source: str
    above: int = 0
    """Smaller ones, by the product of all lengths, may have any."""

    def breaks(self, form: NodeForm) -> str | None:
        perm, shape = form.perm, form.lead
        if perm is None or shape is None or perm.axes in self.perms or _moves_nothing(perm, shape):
            return None
        if _elements(shape) <= self.above:
            return None
        large = f" of more than {self.above} elements" if self.above else ""
        return f"perm {_listed(perm.axes)}: Transposes{large} are run with {_perms(self.perms)}"


@dataclass(frozen=True, slots=True)
class PlaneLimit:
    """How many elements the last two axes of a Transpose's operand may hold."""

    KEY: ClassVar[str] = "plane"
    plane: int
    source: str

    def breaks(self, form: NodeForm) -> str | None:
        perm, shape = form.perm, form.lead
        if perm is None or shape is None or _moves_nothing(perm, shape):
            return None
        found = _elements(shape[-2:])
        if found <= self.plane:
            return None
        return f"its last two axes hold {found} elements, at most {self.plane} are transposed"


@dataclass(frozen=True, slots=True)
class LastAxisLimit:
    """Places to which no Transpose of many axes may move the last one."""

    KEY: ClassVar[str] = "last_axis_not_to"
    last_axis_not_to: tuple[int, ...]
    source: str
    above_rank: int = 0

    def breaks(self, form: NodeForm) -> str | None:
        perm = form.perm
        if perm is None or perm.rank <= self.above_rank:
            return None
        place = perm.axes.index(perm.rank - 1)
        if place not in self.last_axis_not_to:
            return None
        return f"perm {_listed(perm.axes)} moves the last of {perm.rank} axes to place {place}"


@dataclass(frozen=True, slots=True)
class MoveLimit:
    """The axes that a Transpose may move, neighbours that stay together taken as one."""

    KEY: ClassVar[str] = "moved"
    moved: int
    source: str

    def breaks(self, form: NodeForm) -> str | None:
        perm, shape = form.perm, form.lead
        if perm is None or shape is None or perm.rank <= self.moved:
            return None
        found = len(Move.of([n if isinstance(n, int) else UNKNOWN for n in shape], perm).lengths)
        if found <= self.moved:
            return None
        return f"perm {_listed(perm.axes)} moves {found} axes, at most {self.moved} are moved"


@dataclass(frozen=True, slots=True)
class FallbackLimit:
    """Operators that run elsewhere."""

    KEY: ClassVar[str] = "falls_back"
    falls_back: bool
    source: str
    op: Operators

    def breaks(self, form: NodeForm) -> str | None:
        return "the operator is not run" if self.falls_back and form.op_type in self.op else None


@dataclass(frozen=True, slots=True)
class KnownLengthsLimit:
    """Whether all lengths have to be known."""

    KEY: ClassVar[str] = "known_lengths"
    known_lengths: bool
    source: str

    def breaks(self, form: NodeForm) -> str | None:
        lengths = [each for shape in form.shapes if shape is not None for each in shape]
        if not self.known_lengths or all(isinstance(each, int) for each in lengths):
            return None
        return "a length is not known"


KINDS = (
    *(RankLimit, AxisLimit, ValueLimit, PermLimit, PlaneLimit),
    *(LastAxisLimit, MoveLimit, FallbackLimit, KnownLengthsLimit),
)


def limit_of(record: Mapping[str, Any]) -> Limit:
    """The limit that a table of a profile states, by the key that only its kind has."""
    kind = next((kind for kind in KINDS if kind.KEY in record), None)
    if kind is None:
        known = ", ".join(kind.KEY for kind in KINDS)
        raise RelayoutError(f"a limit has none of the keys {known}: {dict(record)}")
    strange = sorted(set(record) - {each.name for each in fields(kind)})
    if strange:
        raise RelayoutError(f"a limit on {kind.KEY} has no key {strange[0]!r}")
    values = {name: _frozen(value) for name, value in record.items()}
    if isinstance(record.get("op"), str):
        values["op"] = (record["op"],)
    try:
        limit: Limit = kind(**values)
    except TypeError as error:
        raise RelayoutError(f"a limit on {kind.KEY} is not complete: {error}") from None
    return limit


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _is_among(form: NodeForm, operators: Operators) -> bool:
    return not operators or form.op_type in operators


def _moves_nothing(perm: Permutation, shape: Shape) -> bool:
    """Whether a Transpose only moves axes of length 1."""
    long = [axis for axis in perm.axes if shape[axis] != 1]
    return long == sorted(long)


def _elements(shape: Shape) -> int:
    """Lengths that are not known count as 1."""
    return prod(length for length in shape if isinstance(length, int))


def _listed(values: tuple[Any, ...]) -> str:
    return " ".join(map(str, values)) if len(values) > 1 else str(*values)


def _perms(perms: tuple[tuple[int, ...], ...]) -> str:
    return " or ".join(map(_listed, perms)) or "no perm"
