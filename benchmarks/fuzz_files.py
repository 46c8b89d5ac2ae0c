"""Damaged files through the command line: python -m benchmarks.fuzz_files [FILES [FIRST_SEED]]

Each file is a small model damaged at random (`tests/suites/damaged_files.py`); commands run on it
in a process of their own with limits of time and memory. A command fails here if it ends with a
code that is not in its table, prints a traceback or a fault of relayout's own, runs too long, dies,
or leaves a file that it should not. `--verify` compares numbers too, which takes longer;
`--commands` runs only some; `--keep FOLDER` keeps files that failed. Exit code 1 if anything did.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import astuple, dataclass, field
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
    for words in commands.values():
        # What a command imports is imported here, so that each process starts with it.
        called(given_files()[0], words)
    gc.freeze()
    tally = Tally()
    for seed in range(options.first, options.first + options.files):
        data = damaged_file(seed)
        faults = len(tally.faults)
        for name, ended in ended_on(data, commands).items():
            tally.add(name, seed, ended)
        if options.keep and len(tally.faults) > faults:
            options.keep.mkdir(exist_ok=True)
            (options.keep / f"{seed}.onnx").write_bytes(data)
    _print(tally, options.files)
    return 1 if tally.faults else 0


def ended_on(data: bytes, commands: Mapping[str, Sequence[str]]) -> dict[str, Ended]:
    """How commands end on a file, in a process of their own; one each where that one dies."""
    found = _apart(data, commands)
    if found is not None:
        return found
    alone = {name: _apart(data, {name: words}) for name, words in commands.items()}
    died = Ended(f"died, or ran longer than {SECONDS} s", -1, SECONDS, 0)
    return {name: died if each is None else each[name] for name, each in alone.items()}


def _apart(data: bytes, commands: Mapping[str, Sequence[str]]) -> dict[str, Ended] | None:
    """How commands end in a copy of this process, within limits; None if that one dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        try:
            ended = {name: astuple(called(data, words)) for name, words in commands.items()}
            os.write(writer, json.dumps(ended).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return {name: Ended(*each) for name, each in json.loads(text).items()} if text else None


def called(data: bytes, words: Sequence[str]) -> Ended:
    """How a command ends on a file."""
    start = time.monotonic()
    signal.alarm(SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "in.onnx"
        given.write_bytes(data)
        places = {"IN": str(given), "OUT.onnx": f"{folder}/out.onnx", "OUT.py": f"{folder}/out.py"}
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            code = relayout([places.get(word, word) for word in words])
        names = {path.name for path in Path(folder).iterdir()} - {"in.onnx"}
        fault = _fault(code, printed.getvalue(), names)
        if given.read_bytes() != data:
            fault = fault or "the input was changed"
    signal.alarm(0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Ended(fault, code, time.monotonic() - start, memory)


def _fault(code: int, text: str, written: set[str]) -> str:
    shown = " ".join(text.split())[:300]
    if any(sign in text for sign in FAULTS):
        return f"printed {shown}"
    if code not in EXPECTED:
        return f"ended with {code}"
    if code == 2 and len(text.strip().splitlines()) != 1:
        return f"printed not one line: {shown}"
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
