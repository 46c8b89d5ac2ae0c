"""The child of an isolated comparison of a .tflite file with the model it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayout.backends.litert.last_bytes import LastBytes
from relayout.backends.litert.parts import PartFile
from relayout.backends.litert.verification import compare_file
from relayout.verify.verdict import NumericOptions, NumericVerdict
from relayout.verify.worker import answer


def _file(request: Mapping[str, Any], options: NumericOptions) -> NumericVerdict:
    given, file = Path(request["given"]), Path(request["file"])
    last = None if request["last"] is None else LastBytes.from_json(request["last"])
    parts = None if request["parts"] is None else PartFile.from_json(request["parts"])
    known = {"fixed": request["fixed"], "steps": request["steps"]}
    return compare_file(given, file, options, **known, last=last, parts=parts)


if __name__ == "__main__":
    answer(_file)
