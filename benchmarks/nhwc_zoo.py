"""Channels last and back, for every model of a folder: python -m benchmarks.nhwc_zoo PATH

One line a model that comes back with more Transposes than it had, that a second run channels last
would change again, or that cannot be converted; totals last. Numbers are not compared here:
`relayout optimize` does that.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import relayout


def there_and_back(file: Path, folder: Path) -> tuple[int, int, int, bool]:
    """The Transposes of a model as given, channels last, and converted back; whether a second
    conversion changes nothing.
    """
    there, back = folder / "there.onnx", folder / "back.onnx"
    first = relayout.optimize(file, there, target="nhwc", verify=False)
    second = relayout.optimize(there, back, target="onnx", minimize="count", verify=False)
    again = relayout.optimize(there, target="nhwc", verify=False)
    counts = (first.before.transposes, first.after.transposes, second.after.transposes)
    return *counts, not again.changed


def main() -> int:
    total: Counter[str] = Counter()
    for file in sorted(Path(sys.argv[1]).glob("*.onnx")):
        with tempfile.TemporaryDirectory() as folder:
            try:
                given, there, back, is_settled = there_and_back(file, Path(folder))
            except relayout.RelayoutError as error:
                total.update(models=1, refused=1)
                print(f"{file.stem}: {error}", flush=True)
                continue
        total.update(models=1, given=given, there=there, back=back)
        total.update(more=back > given, unsettled=not is_settled)
        if back > given or not is_settled:
            note = "" if is_settled else ", and a second run changes it"
            print(f"{file.stem}: {given} -> {there} -> {back}{note}", flush=True)
    print(dict(total))
    return 1 if total["more"] or total["unsettled"] or total["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
