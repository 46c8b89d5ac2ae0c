"""Damaged files through the command line: python -m benchmarks.fuzz_files [FILES [FIRST_SEED]]

Each file is a small model damaged at random (`tests/suites/damaged_files.py`); each command runs on
it in a process of its own with limits of time and memory. A command fails here if it ends with a
code that is not in its table, prints a traceback or a fault of relayout's own, runs too long, dies,
or leaves a file that it should not. `--verify` compares numbers too, which takes longer;
`--commands` runs only some; `--keep FOLDER` keeps files that failed. Exit code 1 if anything did.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from relayout.cli import main as relayout
from tests.suites.damaged_files import damaged_file, given_files

FILES = 3000
SECONDS = 30
BYTES = 8 * 10**9
"""Of address space, of which libraries take 4 before anything is read."""

EXPECTED = {0, 1, 2}
FAULTS = ("Traceback", "fault of relayout")

COMMANDS: dict[str, Sequence[str]] = {
    "check": ("check", "IN", "--max-transposes", "3"),
    "inspect": ("inspect", "IN", "--all"),
    "layouts": ("inspect", "IN", "--layouts", "--json"),
    "optimize": ("optimize", "IN", "-o", "OUT.onnx", "--no-verify", "--budget", "2"),
    "nhwc": ("optimize", "IN", "-o", "OUT.onnx", "--no-verify", "--target", "nhwc", "--json"),
    "fuse": ("fuse", "IN", "-o", "OUT.onnx", "--no-verify"),
    "compile": ("compile", "IN", "-o", "OUT.py", "--plain", "--no-verify"),
}
VERIFIED: dict[str, Sequence[str]] = {
    "optimize": ("optimize", "IN", "-o", "OUT.onnx", "--budget", "2"),
    "fuse": ("fuse", "IN", "-o", "OUT.onnx"),
    "compile": ("compile", "IN", "-o", "OUT.py", "--plain"),
}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: what is wrong with that, if anything is."""

    fault: str
    code: int
    seconds: float
    kilobytes: int


@dataclass(slots=True)
class Tally:
    """What all runs showed."""

    codes: Counter[tuple[str, int]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")

    def add(self, name: str, seed: int, ended: Ended) -> None:
        self.codes[name, ended.code] += 1
        place = f"{name} of {seed}"
        self.slowest = max(self.slowest, (ended.seconds, place))
        self.largest = max(self.largest, (ended.kilobytes, place))
        if ended.fault:
            self.faults.append(f"{place}: {ended.fault}")
            print(f"  {self.faults[-1]}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=int, nargs="?", default=FILES)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--commands", nargs="*", choices=COMMANDS)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    commands = VERIFIED if options.verify else COMMANDS
    commands = {name: commands[name] for name in options.commands or commands}
    _import_everything(commands)
    tally = Tally()
    for seed in range(options.first, options.first + options.files):
        data = damaged_file(seed)
        for name, words in commands.items():
            ended = ended_on(data, words)
            tally.add(name, seed, ended)
            if ended.fault and options.keep:
                options.keep.mkdir(exist_ok=True)
                (options.keep / f"{seed}.onnx").write_bytes(data)
    _print(tally, options.files)
    return 1 if tally.faults else 0


def _import_everything(commands: dict[str, Sequence[str]]) -> None:
    """What a command imports is imported here once, so that its process starts with it."""
    for words in commands.values():
        ended_on(given_files()[0], words, _here)


def _here(run: Callable[[], int]) -> Ended:
    run()
    return Ended("", 0, 0.0, 0)


def ended_on(
    data: bytes, words: Sequence[str], apart: Callable[[Callable[[], int]], Ended] | None = None
) -> Ended:
    """How a command ends on a file, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        given, printed = Path(folder) / "in.onnx", Path(folder) / "printed"
        given.write_bytes(data)
        places = {"IN": str(given), "OUT.onnx": f"{folder}/out.onnx", "OUT.py": f"{folder}/out.py"}
        call = [places.get(word, word) for word in words]
        ended = (apart or _apart)(lambda: _called(call, printed))
        text = printed.read_text(errors="replace")
        names = {path.name for path in Path(folder).iterdir()} - {"in.onnx", "printed"}
        fault = ended.fault or _fault(ended.code, text, names)
        if given.read_bytes() != data:
            fault = fault or "the input was changed"
    return Ended(fault, ended.code, ended.seconds, ended.kilobytes)


def _called(call: Sequence[str], printed: Path) -> int:
    with printed.open("w") as file, redirect_stdout(file), redirect_stderr(file):
        return relayout(call)


def _apart(run: Callable[[], int]) -> Ended:
    """Run in a copy of this process, within limits."""
    start = time.monotonic()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        code = 99
        try:
            code = run()
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    fault = f"ran longer than {SECONDS} s" if code == -signal.SIGALRM else ""
    return Ended(fault, code, time.monotonic() - start, usage.ru_maxrss)


def _fault(code: int, text: str, written: set[str]) -> str:
    for sign in FAULTS:
        if sign in text:
            return f"printed {' '.join(text.split())[:300]}"
    if code not in EXPECTED:
        return f"ended with {code}"
    if code == 2 and len(text.strip().splitlines()) != 1:
        return f"printed not one line: {' '.join(text.split())[:300]}"
    if code and written:
        return f"left {sorted(written)} with exit code {code}"
    strange = {name for name in written if name.startswith(".")}
    return f"left {sorted(strange)}" if strange else ""


def _print(tally: Tally, files: int) -> None:
    runs = tally.codes.total()
    print(f"{files} files, {runs} runs, {len(tally.faults)} failures")
    for name in dict.fromkeys(name for name, _ in tally.codes):
        codes = {code: n for (each, code), n in sorted(tally.codes.items()) if each == name}
        print(f"  {name}: " + ", ".join(f"{n} ended with {code}" for code, n in codes.items()))
    print(f"  longest {tally.slowest[0]:.1f} s ({tally.slowest[1]})")
    print(f"  most memory {tally.largest[0] / 1e6:.2f} GB ({tally.largest[1]})")


if __name__ == "__main__":
    sys.exit(main())
