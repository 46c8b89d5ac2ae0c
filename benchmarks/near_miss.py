"""Near misses for the prover: python -m benchmarks.near_miss [--pairs N] [--seed S] [--processes P]

Draws small models, changes each by a little, and compares what the prover says of both with what
they compute, by numbers. Prints how many pairs that differ were proved equal, which must be none,
and how many that are equal were proved.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

import onnx

from benchmarks.near_misses.edits import EDITS
from benchmarks.near_misses.models import random_model
from benchmarks.near_misses.rewrites import REWRITES
from benchmarks.near_misses.truth import (
    EQUAL,
    ROUNDED,
    Array,
    CannotRunError,
    Feeds,
    Runner,
    difference,
    feeds,
    runtime_results,
)
from relayout import optimize
from relayout.verify.proof.proof import prove_models
from relayout.verify.proof.verdict import ModelProof

TWINS = 8
"""Pairs of one model."""
PAIRS = 100_000
BATCH = 1000
"""Models after which the counts so far are shown."""
PART = 20
"""Models that a process is given at a time."""
OPTIMISED = 0.1
"""How many of the models are optimised too."""


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.wrong += other.wrong


# Differences of runtimes that choose another order of sums.
RUNTIME = 1e-5
Run = tuple[dict[str, int], Feeds, list[Array]]
"""Lengths of open axes, inputs and results."""


@dataclass
class Case:
    """A model with the results of its runs."""

    model: onnx.ModelProto
    runs: list[Run]

    @classmethod
    def of(cls, model: onnx.ModelProto, seed: int) -> Case | None:
        if not model.graph.output or not model.graph.input:
            return None
        runner, runs = Runner(model), []
        for bound, given in feeds(model, seed):
            try:
                runs.append((bound, given, runner.run(given)))
            except CannotRunError:
                if not bound:
                    return None
        return cls(model, runs) if runs and _as_declared(model, runs[0]) else None

    def apart(self, twin: onnx.ModelProto, proof: ModelProof) -> float:
        """How far both are apart, at lengths for which the proof holds, as soon as it is clear."""
        runner, worst = Runner(twin), 0.0
        for bound, given, results in self.runs:
            if all(_holds(condition, bound) for condition in proof.conditions):
                worst = max(worst, difference(results, runner.run(given)))
            if worst > ROUNDED:
                break
        return worst

    def same_in_runtime(self, twin: onnx.ModelProto) -> bool:
        """Whether ONNX Runtime runs both and finds no difference."""
        try:
            pairs = [
                [runtime_results(model, given) for model in (self.model, twin)]
                for _, given, _ in self.runs
            ]
        except CannotRunError:
            return False
        return all(difference(*pair) < RUNTIME for pair in pairs)


def _as_declared(model: onnx.ModelProto, run: Run) -> bool:
    """Whether the results have the shapes that shape inference found."""
    bound, _, results = run
    shapes = [
        [dim.dim_value for dim in port.type.tensor_type.shape.dim] for port in model.graph.output
    ]
    return bool(bound) or shapes == [list(one.shape) for one in results]


def _holds(condition: str, bound: dict[str, int]) -> bool:
    one, _, other = condition.partition(" = ")
    known = [bound.get(side, int(side) if side.isdigit() else None) for side in (one, other)]
    return None not in known and known[0] == known[1]


def twins(rng: random.Random, model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Changed models, each with how it was changed."""
    base = model
    if rng.random() < OPTIMISED:
        base = optimize(model, verify=False).model
        yield "optimised", base
    for _ in range(TWINS):
        twin, done = onnx.ModelProto(), []
        twin.CopyFrom(base)
        if base is not model:
            done.append("optimised")
        way = rng.random()
        if way < 0.45:
            changes = [rng.choice(REWRITES) for _ in range(rng.randrange(1, 4))]
            changes += [rng.choice(EDITS)] if way < 0.2 else []
        else:
            changes = [rng.choice(EDITS) for _ in range(2 if way > 0.9 else 1)]
        try:
            done += [one.__name__ for one in changes if one(rng, twin)]
        except (ValueError, TypeError, IndexError, onnx.shape_inference.InferenceError):
            continue
        if done and _valid(base, twin):
            yield ", ".join(done), twin


def _valid(model: onnx.ModelProto, twin: onnx.ModelProto) -> bool:
    try:
        found = onnx.shape_inference.infer_shapes(twin, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError):
        return False
    ends = zip(found.graph.output, model.graph.output, strict=True)
    return all(
        one.type == other.type or not other.type.tensor_type.shape.dim for one, other in ends
    )


def judged(case: Case, twin: onnx.ModelProto) -> str:
    """The verdict and the truth in words; a verdict that is wrong begins with WRONG."""
    try:
        proof = prove_models(case.model, twin)
    except Exception as error:  # noqa: BLE001 - one failure must not hide the next
        return f"FAILED: {type(error).__name__} {error}"[:200]
    try:
        apart = case.apart(twin, proof)
    except CannotRunError:
        return "proved, cannot run" if proof.holds else "cannot run"
    if not proof.holds:
        return "equal, not proved" if apart <= EQUAL else "different, not proved"
    if apart > (ROUNDED if proof.ledger else EQUAL):
        if case.same_in_runtime(twin):
            return "proved, equal in ONNX Runtime but not in the reference"
        return f"WRONG: proved, apart by {apart:.1e}" + " but for rounding" * bool(proof.ledger)
    return "equal, proved" + " but for rounding" * bool(proof.ledger)


def tried(seed: int) -> Tally:
    """The pairs of one model."""
    rng, tally = random.Random(seed), Tally()
    case = Case.of(random_model(rng), seed)
    if case is None:
        return tally
    for how, twin in twins(rng, case.model):
        verdict = judged(case, twin)
        bad = verdict.startswith(("WRONG", "FAILED"))
        tally.counts[verdict.partition(":")[0] if bad else verdict] += 1
        tally.counts["pairs"] += verdict != "cannot run"
        if bad:
            tally.wrong.append(f"seed {seed}, {how}: {verdict}")
    return tally


def all_tried(seeds: Sequence[int]) -> Tally:
    total = Tally()
    for seed in seeds:
        total.add(tried(seed))
    return total


def in_processes(seeds: Sequence[int], processes: int) -> Iterator[Tally]:
    """What comes of seeds; ONNX Runtime may end the process of one."""
    interrupted = []
    with ProcessPoolExecutor(processes) as pool:
        parts = [seeds[at : at + PART] for at in range(0, len(seeds), PART)]
        futures = {pool.submit(all_tried, part): part for part in parts}
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                interrupted.append(futures[future])
    for part in interrupted:
        yield from alone(part)


def alone(seeds: Sequence[int]) -> Iterator[Tally]:
    """Seeds in a process of their own, and each in one where that ends."""
    try:
        with ProcessPoolExecutor(1) as pool:
            yield pool.submit(all_tried, seeds).result()
    except BrokenProcessPool:
        if len(seeds) == 1:
            yield Tally(Counter({"ended the runtime": 1}))
            return
        for seed in seeds:
            yield from alone([seed])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    total, first = Tally(), given.seed
    while total.counts["pairs"] < given.pairs:
        shown = len(total.wrong)
        for tally in in_processes(range(first, first + BATCH), given.processes):
            total.add(tally)
        first += BATCH
        print(*total.wrong[shown:], sep="\n", end="\n" * (shown < len(total.wrong)))
        print(f"{total.counts['pairs']} pairs of seeds {given.seed} to {first - 1}", flush=True)
    for verdict, count in sorted(total.counts.items()):
        print(f"  {verdict}: {count}")


if __name__ == "__main__":
    main()
