"""Groups within limits: python -m benchmarks.fuse_limits [FILES [FIRST_SEED]]

Groups random ONNX files of up to 100 nodes within limits on operators and arguments, in every mode
that keeps limits, and counts the functions that exceed one. Ends with 1 if there is any.
"""

from __future__ import annotations

import random
import sys
import time

from relayout.fusion.partition import MODES
from relayout.optimizer.fuse import fuse
from tests.fusion.random_files import random_file
from tests.fusion.written import arguments_of, functions_of, operators_in

FILES = 2000
DEPTHS = (1, 2, 3, 5, 9, 256)
ARGUMENTS = (0, 1, 2, 3, 4, 6)


def functions_beyond(seed: int) -> tuple[int, int]:
    """How many functions a file is given, and how many of them exceed a limit."""
    chance = random.Random(seed)
    model, depth, most = random_file(seed), chance.choice(DEPTHS), chance.choice(ARGUMENTS)
    made, exceeding = 0, 0
    for mode in (name for name, mode in MODES.items() if mode.keeps_limits):
        result = fuse(model, mode=mode, max_depth=depth, max_args=most, verify=False)
        for function in functions_of(result.model):
            is_wide = 0 < most < arguments_of(function)
            exceeding += is_wide or len(operators_in(function)) > depth
            made += 1
    return made, exceeding


def main() -> int:
    count, first = ([int(word) for word in sys.argv[1:]] + [FILES, 0][len(sys.argv) - 1 :])[:2]
    started = time.perf_counter()
    found = [functions_beyond(seed) for seed in range(first, first + count)]
    seconds = time.perf_counter() - started
    made, exceeding = map(sum, zip(*found, strict=True))
    print(f"{count} files, {made} functions, {exceeding} beyond a limit, {seconds:.0f} s")
    return 1 if exceeding else 0


if __name__ == "__main__":
    sys.exit(main())
