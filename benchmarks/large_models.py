"""Memory and time of optimising models whose weights do not fit into memory.

    python -m benchmarks.large_models FOLDER [--gigabytes 6] [--permuted 1.0] [--rounds 3]
        [--here] [--hard-links]

Builds a model of square products in FOLDER, its weights in files of 8 GB, and optimises it into
`out/` in it, or beside the given file with `--here`, with `--memory 2GB`. A share of the weights
stands behind a Transpose and holds numbers; the others are holes, which take no disk. In turns with
that, the permuted weights are copied as they are; both read from the disk what the system had in
memory of the weights before, and begin after a pause. Bytecode is in `bytecode/`, as after an
installation. Prints medians of seconds, and the most memory that a process had resident.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from onnx import TensorProto, helper

import relayout
from benchmarks.bytecode import with_bytecode

GIGABYTE = 10**9
SIDE = 4096
WEIGHT = SIDE * SIDE * 4
SHARD = 8 * GIGABYTE // WEIGHT
"""Weights in a file."""
PAUSE = 5.0
"""Seconds after which memory that was given back is taken back by the host, where there is one."""


@dataclass(frozen=True)
class LargeModel:
    """A chain of products, some of whose weights stand behind a Transpose."""

    folder: Path
    gigabytes: float
    permuted: float

    @property
    def path(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def bytecode(self) -> Path:
        """Where that of relayout is kept."""
        return self.folder / "bytecode"

    @property
    def layers(self) -> int:
        return max(1, int(self.gigabytes * GIGABYTE / WEIGHT))

    @property
    def moved(self) -> list[int]:
        """The layers whose weights are permuted, spread over all."""
        count = max(1, round(self.layers * self.permuted))
        return [index * self.layers // count for index in range(count)]

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        numbers = np.random.default_rng(0)
        moved = set(self.moved)
        for start in range(0, self.layers, SHARD):
            with (self.folder / self._shard(start)).open("wb") as file:
                stop = min(start + SHARD, self.layers)
                file.truncate((stop - start) * WEIGHT)
                for index in sorted(moved.intersection(range(start, stop))):
                    file.seek(_offset(index))
                    file.write(numbers.standard_normal((SIDE, SIDE), np.float32).data)
        onnx.save(self._message(moved), self.path)

    def _message(self, moved: set[int]) -> onnx.ModelProto:
        nodes, weights = [], []
        for index in range(self.layers):
            weights.append(self._weight(index))
            factor = f"w{index}"
            if index in moved:
                nodes.append(helper.make_node("Transpose", [factor], [f"t{index}"], perm=[1, 0]))
                factor = f"t{index}"
            nodes.append(helper.make_node("MatMul", [f"x{index}", factor], [f"x{index + 1}"]))
        ports = [
            helper.make_tensor_value_info(f"x{index}", TensorProto.FLOAT, [1, SIDE])
            for index in (0, self.layers)
        ]
        graph = helper.make_graph(nodes, "large", ports[:1], ports[1:], weights)
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=9)

    def _weight(self, index: int) -> onnx.TensorProto:
        tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[SIDE, SIDE])
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": self._shard(index), "offset": _offset(index), "length": WEIGHT}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    def _shard(self, index: int) -> str:
        return f"model-{index // SHARD:05}.data"

    def forget(self) -> None:
        """Let the weights be on the disk only, where whoever needs them has to read them.

        The host of a virtual machine takes back memory that is free for seconds, and lends it anew
        more slowly than it is copied: whoever comes next finds little that is lent.
        """
        for shard in self.folder.glob("*.data"):
            with shard.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        time.sleep(PAUSE)


def _offset(index: int) -> int:
    return index % SHARD * WEIGHT


@dataclass(frozen=True)
class Spent:
    """What something took."""

    seconds: float
    on_cores: float
    """Seconds of all cores together."""

    @classmethod
    def since(cls, began: Spent) -> Spent:
        now = cls.now()
        return cls(now.seconds - began.seconds, now.on_cores - began.on_cores)

    @classmethod
    def now(cls) -> Spent:
        """By this process, and by those that it waited for."""
        return cls(time.perf_counter(), sum(os.times()[:4]))


def copied_plainly(model: LargeModel) -> Spent:
    """What copying the permuted weights to a new file takes, as they are."""
    model.forget()
    began = Spent.now()
    copy = model.folder / "plain.copy"
    with copy.open("wb") as writer:
        for index in model.moved:
            with (model.folder / f"model-{index // SHARD:05}.data").open("rb") as reader:
                reader.seek(_offset(index))
                writer.write(reader.read(WEIGHT))
        writer.flush()
        os.fsync(writer.fileno())
    spent = Spent.since(began)
    copy.unlink()
    return spent


@dataclass(frozen=True)
class LargeRun:
    """A run of `relayout optimize`."""

    spent: Spent
    told: str

    @classmethod
    def of(cls, model: LargeModel, options: Sequence[str], *, here: bool) -> LargeRun:
        out = model.folder if here else model.folder / "out"
        out.mkdir(exist_ok=True)
        model.forget()
        command = [sys.executable, "-m", "relayout", "optimize", str(model.path)]
        command += ["-o", str(out / "result.onnx"), "--memory", "2GB", "--json", *options]
        began = Spent.now()
        ended = subprocess.run(
            command,
            env=with_bytecode(model.bytecode),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        spent = Spent.since(began)
        answer = json.loads(ended.stdout)
        told = [f"exit code {ended.returncode}; {answer.get('verdict', answer.get('error'))}"]
        for file in out.glob("result.onnx*"):
            file.unlink()
        if not here:
            shutil.rmtree(out)
        return cls(spent, "\n".join([*told, *answer.get("notices", ())]))


def compile_all(bytecode: Path) -> None:
    """Make the bytecode that is not there yet."""
    package = str(Path(relayout.__file__).parent)
    command = [sys.executable, "-m", "compileall", "-q", package]
    subprocess.run(command, env=with_bytecode(bytecode), check=True)


def _medians(spent: Sequence[Spent]) -> str:
    seconds, on_cores = (
        median(values) for values in zip(*((s.seconds, s.on_cores) for s in spent), strict=True)
    )
    return f"{seconds:.1f} s, {on_cores:.1f} s of a core"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--permuted", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="write beside the given model")
    parser.add_argument("--hard-links", action="store_true", help="as of relayout optimize")
    asked = parser.parse_args()
    model = LargeModel(asked.folder, asked.gigabytes, asked.permuted)
    if not model.path.exists():
        model.write()
    compile_all(model.bytecode)
    options = ["--hard-links"] * asked.hard_links
    plain, runs = [], []
    for _ in range(asked.rounds):
        plain.append(copied_plainly(model))
        runs.append(LargeRun.of(model, options, here=asked.here))
    # Of the largest of the processes that ended, those that compare included.
    resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{model.layers} weights of {WEIGHT / 1e6:.0f} MB, {len(model.moved)} of them permuted")
    print(runs[-1].told)
    spent = [run.spent for run in runs]
    print(f"optimised: {_medians(spent)}")
    print(f"the permuted weights alone, read and written: {_medians(plain)}")
    pairs = list(zip(spent, plain, strict=True))
    ratio = median(one.seconds / other.seconds for one, other in pairs)
    of_cores = median(one.on_cores / other.on_cores for one, other in pairs)
    print(f"ratio: {ratio:.2f}, of a core {of_cores:.2f}")
    print(f"most resident memory of a process: {resident / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
