"""What was measured on a device, kept in a file so that a choice is made once."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

CACHE = "RELAYOUT_CACHE"
"""The environment variable that names the folder of measurements."""


ALIKE = 1.05
"""Times that differ by less are alike: the next measurement may order them otherwise."""


def cache_folder() -> Path:
    if CACHE in os.environ:
        return Path(os.environ[CACHE])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "relayout"


@dataclass(slots=True)
class Prices:
    """Seconds by group and candidate, on one device with one version of torch."""

    device: str
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    path: Path | None = None

    @classmethod
    def of(cls, device: str) -> Prices:
        """What is known of a device; a file that cannot be read counts as none."""
        plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in device)
        path = cache_folder() / f"torch-{plain}.json"
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        return cls(device, known, path)

    def best(self, group: str, names: tuple[str, ...]) -> str | None:
        """The first candidate that is about as fast as any, if all of them have been measured."""
        known = self.seconds.get(group, {})
        if not names or any(name not in known for name in names):
            return None
        least = min(known[name] for name in names)
        return next(name for name in names if known[name] <= ALIKE * least)

    def learn(self, group: str, name: str, seconds: float) -> None:
        self.seconds.setdefault(group, {})[name] = seconds

    def save(self) -> None:
        """Write the file whole, or leave it as it was."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.seconds, indent=1, sort_keys=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=self.path.parent, delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        Path(file.name).replace(self.path)
