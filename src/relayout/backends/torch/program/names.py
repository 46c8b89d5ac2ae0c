"""Python identifiers for the names of a model."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

RESERVED = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "F", "math", "torch"))
LONGEST = 60


def identifier(name: str) -> str:
    """What is left of a name when it has to be a Python identifier."""
    text = re.sub(r"\W+", "_", name.removesuffix("_output_0"), flags=re.ASCII).strip("_")
    text = text[-LONGEST:].strip("_") or "v"
    return f"v{text}" if text[0].isdigit() else text


@dataclass
class PythonNames:
    """Gives every identifier once."""

    taken: dict[str, int] = field(default_factory=dict)

    def reserve(self, names: Iterable[str]) -> None:
        self.taken.update(dict.fromkeys(names, 0))

    def fresh(self, hint: str) -> str:
        """An identifier that is not in use, as close to the hint as possible."""
        text = identifier(hint)
        if text not in self.taken and text not in RESERVED:
            self.taken[text] = 0
            return text
        count = self.taken.get(text, 0)
        while True:
            count += 1
            name = f"{text}_{count}"
            if name not in self.taken:
                self.taken[text] = count
                self.taken[name] = 0
                return name
