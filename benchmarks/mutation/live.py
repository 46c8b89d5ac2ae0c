"""Functions of the running program that are given other code, and back."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from benchmarks.mutation.mutants import Mutant

CACHE = type(functools.cache(len))
Place = tuple[str, str]
"""A file and a function in it."""


def place_of(code: CodeType) -> Place:
    """The function that a code object is in, whatever it is nested in there."""
    return code.co_filename, code.co_qualname.partition(".<locals>")[0]


def _named(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


class Live:
    """The functions and caches of some files that are loaded."""

    def __init__(self, files: frozenset[str], package: str) -> None:
        self.files = files
        self.functions: dict[Place, list[FunctionType]] = {}
        self.caches: list[Any] = []
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename in files:
                self.functions.setdefault(place_of(found.__code__), []).append(found)
            elif isinstance(found, CACHE) and str(found.__module__).startswith(package):
                self.caches.append(found)

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """While it lasts, the function of a mutant is what the mutant makes of it."""
        codes = mutant.codes()
        functions = [
            (found, codes[_named(found.__code__)])
            for found in self.functions[str(mutant.path), mutant.function]
            if _named(found.__code__) in codes
        ]
        given = [found.__code__ for found, _ in functions]
        self._forget()
        try:
            for found, code in functions:
                found.__code__ = code
            yield
        finally:
            for (found, _), own in zip(functions, given, strict=True):
                found.__code__ = own
            self._forget()

    def has(self, mutant: Mutant) -> bool:
        return (str(mutant.path), mutant.function) in self.functions

    def _forget(self) -> None:
        """What was computed under other code is computed again."""
        for cache in self.caches:
            cache.cache_clear()


@contextlib.contextmanager
def calls(files: frozenset[str]) -> Iterator[set[Place]]:
    """The functions of some files that are called meanwhile."""
    seen: set[CodeType] = set()
    places: set[Place] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code not in seen:
            seen.add(frame.f_code)

    sys.setprofile(watch)
    try:
        yield places
    finally:
        sys.setprofile(None)
        places.update(place_of(code) for code in seen if code.co_filename in files)


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")
