"""The source of helpers, with all that they use themselves."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable

from relayout.backends.torch.program.draft import Helper
from relayout.graph.invariants import InvariantError

PACKAGE = "relayout.backends.torch."


def closure(helpers: Iterable[Helper]) -> dict[str, str]:
    """By name the source of helpers and of those they use, users after what they use."""
    found: dict[str, str] = {}
    for helper in helpers:
        _visit(helper, found)
    return found


def _visit(helper: Helper, found: dict[str, str]) -> None:
    source = textwrap.dedent(inspect.getsource(helper)).rstrip()
    if helper.__name__ in found:
        if found[helper.__name__] != source:
            raise InvariantError(f"two helpers of a module are called {helper.__name__!r}")
        return
    found[helper.__name__] = source
    for used in _used(helper, source):
        _visit(used, found)
    # After what it uses, so that definitions are read before their uses.
    found[helper.__name__] = found.pop(helper.__name__)


def _used(helper: Helper, source: str) -> list[Helper]:
    """The other helpers that the text of one names."""
    around = vars(sys.modules[helper.__module__])
    names = [node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    candidates = [around.get(name) for name in dict.fromkeys(names)]
    return [
        item
        for item in candidates
        if (inspect.isfunction(item) or inspect.isclass(item))
        and item.__module__.startswith(PACKAGE)
        and item is not helper
    ]
