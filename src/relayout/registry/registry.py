"""One way to find a value by its name, and to add one from outside.

A package adds a value with an entry point, which is loaded when its name is asked for:

[project.entry-points."relayout.targets"]
my-npu = "my_package:MY_NPU"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from relayout.errors import RelayoutError, quoted

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Named values of one sort: our own, those registered, and those of entry points."""

    def __init__(self, noun: str, group: str, own: Mapping[str, Entry], plural: str = "") -> None:
        self.noun, self.group = noun, group
        self.plural = plural or f"{noun}s"
        self._values: dict[str, Entry] = dict(own)
        self._kind = type(next(iter(own.values())))

    def __iter__(self) -> Iterator[str]:
        """The names, our own first."""
        yield from self._values
        yield from (name for name in self._installed if name not in self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._installed

    def __getitem__(self, name: str) -> Entry:
        if name not in self._values and name in self._installed:
            self._values[name] = self._loaded(self._installed[name])
        if name not in self._values:
            known = ", ".join(self)
            raise RelayoutError(f"unknown {self.noun} {name!r}; the {self.plural} are {known}")
        return self._values[name]

    def of(self, given: str | Entry) -> Entry:
        """The value of a name; one that is given itself is taken as it is."""
        if isinstance(given, str):
            return self[given]
        if not isinstance(given, self._kind):
            kind, other = self._kind.__name__, type(given).__name__
            raise RelayoutError(f"a {self.noun} is given by name or as {kind}, not as {other}")
        return given

    def register(self, name: str, value: Entry) -> None:
        """Add a value; a name that is taken is refused, so that no two mean different things."""
        if name in self and self[name] is not value:
            raise RelayoutError(f"there is a {self.noun} {name!r} already")
        self._values[name] = value

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in installed(self.group)}

    def _loaded(self, point: EntryPoint) -> Entry:
        value = loaded(point)
        if not isinstance(value, self._kind):
            raise RelayoutError(f"{plugin_of(point)} gives no {self._kind.__name__}")
        return value


def installed(group: str) -> list[EntryPoint]:
    """The entry points of a group, in an order that does not depend on the file system."""
    return sorted(entry_points(group=group), key=lambda point: (point.name, point.value))


def plugin_of(point: EntryPoint) -> str:
    """An entry point in words."""
    return f"the plugin {point.group} {quoted(point.name)}"


def loaded(point: EntryPoint) -> Any:
    """What an entry point names; an error in its package is reported as that package's."""
    try:
        return point.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise RelayoutError(f"{plugin_of(point)} cannot be loaded: {reason}") from error
