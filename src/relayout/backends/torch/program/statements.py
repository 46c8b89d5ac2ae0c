"""Statements of a function: what is never read is left out, what is not read again is freed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Statement:
    """Source text of one statement, perhaps of several lines."""

    text: str
    is_scalar: bool = False
    """Whether it only names Python numbers: not worth freeing, and left out if not read."""

    @cached_property
    def _names(self) -> list[ast.Name]:
        return [node for node in ast.walk(ast.parse(self.text)) if isinstance(node, ast.Name)]

    @cached_property
    def reads(self) -> frozenset[str]:
        """Also what the functions it defines read."""
        return frozenset(name.id for name in self._names if isinstance(name.ctx, ast.Load))

    @cached_property
    def function(self) -> str | None:
        """The name of the function it defines, if it is a definition."""
        defined = ast.parse(self.text).body[0]
        return defined.name if isinstance(defined, ast.FunctionDef) else None

    @cached_property
    def writes(self) -> tuple[str, ...]:
        if self.function is not None:
            return ()
        return tuple(name.id for name in self._names if isinstance(name.ctx, ast.Store))


def finished(statements: Sequence[Statement], returns: str) -> list[str]:
    """The lines of a function's body, with its last line."""
    last = Statement(f"({returns})")
    kept = _needed(statements, last.reads)
    return [*_freeing(kept, last.reads), f"return {returns}"]


def _needed(statements: Sequence[Statement], returned: Iterable[str]) -> list[Statement]:
    read = set(returned)
    kept = []
    for statement in reversed(statements):
        if statement.is_scalar and read.isdisjoint(statement.writes):
            continue
        read |= statement.reads
        kept.append(statement)
    return kept[::-1]


def _freeing(statements: Sequence[Statement], returned: frozenset[str]) -> list[str]:
    """The statements, with `del` after the last reader of each tensor."""
    last = _last_readers(statements)
    dying: dict[int, list[str]] = {}
    for index, statement in enumerate(statements):
        for name in () if statement.is_scalar else statement.writes:
            if name not in returned and name != "_":
                dying.setdefault(last.get(name, index), []).append(name)
    lines: list[str] = []
    for index, statement in enumerate(statements):
        lines += statement.text.splitlines()
        if index in dying and index < len(statements) - 1:
            lines.append(f"del {', '.join(dying[index])}")
    return lines


def _last_readers(statements: Sequence[Statement]) -> dict[str, int]:
    """By name the last statement that reads it, by itself or by calling a function that does."""
    captured: dict[str, frozenset[str]] = {}
    last: dict[str, int] = {}
    for index, statement in enumerate(statements):
        reads = statement.reads.union(*(captured.get(name, ()) for name in statement.reads))
        if statement.function is not None:
            captured[statement.function] = reads
        last.update(dict.fromkeys(reads, index))
    return last


def indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]
