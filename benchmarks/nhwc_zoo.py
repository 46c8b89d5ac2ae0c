"""Channels last and back, for every model of a folder: python -m benchmarks.nhwc_zoo PATH

One line a model that comes back with more Transposes than it had, or cannot be converted; totals
last. Numbers are not compared here: `relayout optimize` does that.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import relayout


def there_and_back(file: Path, folder: Path) -> tuple[int, int, int]:
    """The Transposes of a model as given, channels last, and turned back."""
    there, back = folder / "there.onnx", folder / "back.onnx"
    first = relayout.optimize(file, there, target="nhwc", verify=False)
    second = relayout.optimize(there, back, target="onnx", minimize="count", verify=False)
    return first.before.transposes, first.after.transposes, second.after.transposes


def main() -> int:
    total: Counter[str] = Counter()
    for file in sorted(Path(sys.argv[1]).glob("*.onnx")):
        with tempfile.TemporaryDirectory() as folder:
            try:
                given, there, back = there_and_back(file, Path(folder))
            except relayout.RelayoutError as error:
                total.update(models=1, refused=1)
                print(f"{file.stem}: {error}", flush=True)
                continue
        total.update(models=1, given=given, there=there, back=back, more=back > given)
        if back > given:
            print(f"{file.stem}: {given} -> {there} -> {back}", flush=True)
    print(dict(total))
    return 1 if total["more"] or total["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
