"""README lists the strategies that there are, in their order."""

from __future__ import annotations

import re

from docs.layers import ROOT
from relayout.assign.strategies.registry import STRATEGIES


def test_readme_lists_every_strategy() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("| strategy | how it chooses |")
    table = rest.partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, flags=re.MULTILINE) == list(STRATEGIES)
