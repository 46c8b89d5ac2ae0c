"""Networks compiled at the same time, each in a process of its own, and measured in turns."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

READY = "ready to be measured"
TO_READ = 1.0
"""Seconds in which a process that is ready has been heard, also where no time is left."""


@dataclass(slots=True)
class Child:
    """A process that compiles a network, and measures it when it is told to."""

    name: str
    process: subprocess.Popen[str]
    output: Path

    @classmethod
    def of(cls, name: str, folder: Path, options: argparse.Namespace) -> Child:
        output = folder / f"{name}.json"
        command = [sys.executable, "-m", "benchmarks.networks", "--device", "cuda", "--waits"]
        command += ["--only", name, "--output", str(output), "--ways", *options.ways]
        for setting in ("batch", "dtype", "exporter", "rounds", "kernels"):
            command += [f"--{setting}", str(getattr(options, setting))]
        command += ["--set-aside"] * options.set_aside + ["--choices"] * options.choices
        threads = str(max(1, (os.cpu_count() or 1) // options.jobs))
        limits = {"OMP_NUM_THREADS": threads, "TORCHINDUCTOR_COMPILE_THREADS": threads}
        pipe = subprocess.PIPE
        environment = {**os.environ, **limits}
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        return cls(name, process, output)

    def wait_until_ready(self, seconds: float) -> None:
        """Until it says so, or ends, as it has to after some seconds."""
        timer = Timer(seconds, self.process.kill)
        timer.start()
        for line in self.process.stdout or ():
            if line.strip() == READY:
                break
            print(f"{self.name}: {line.rstrip()}", flush=True)
        timer.cancel()

    def rows(self) -> list[dict[str, Any]]:
        """What it measures now; nothing of a process that has ended."""
        if self.process.poll() is None:
            self.process.communicate("\n")
        if not self.output.exists():
            print(f"{self.name}: ended with exit code {self.process.returncode}", flush=True)
            return []
        rows: list[dict[str, Any]] = json.loads(self.output.read_text())
        return rows


def side_by_side(names: Sequence[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row a network, as many of them compiled at a time as there are jobs."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(names), options.jobs):
            some = names[start : start + options.jobs]
            if time.monotonic() - begun > options.limit:
                print(f"left out for want of time: {', '.join(some)}", flush=True)
                continue
            children = [Child.of(name, Path(folder), options) for name in some]
            for child in children:
                left = begun + options.limit - time.monotonic()
                child.wait_until_ready(max(TO_READ, left))
            for child in children:
                yield from child.rows()
