"""What a numeric comparison is asked and what it answers, as plain values that travel as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from relayout.verify.proof.verdict import ModelProof

Status = Literal["equal", "differs", "unknown"]

NOTHING = "nothing was compared: no output has an element at the lengths tried"


@dataclass(frozen=True)
class NumericOptions:
    """What the caller knows about the inputs.

    `dims` gives sizes to named dimensions (a nameless one is called "input[axis]"), `shapes` whole
    shapes, `fixed` the values of inputs, `integer_ranges` the lowest value and the first one too
    high. `tolerance` is relative to the scale of an element: the least of the largest magnitudes in
    its slices and among those of about its size. `fix_defaults`: inputs with defaults became
    constants. `memory` is what a comparison in a process of its own may use,
    in gigabytes.
    """

    dims: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    integer_ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    tolerance: float | None = None
    seed: int = 0
    fix_defaults: bool = False
    memory: float | None = None

    def to_json(self) -> dict[str, Any]:
        fixed = {name: np.asarray(value).tolist() for name, value in self.fixed.items()}
        return {**asdict(self), "fixed": fixed}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NumericOptions:
        shapes = {name: tuple(shape) for name, shape in data["shapes"].items()}
        ranges = {name: (low, high) for name, (low, high) in data["integer_ranges"].items()}
        return cls(**{**data, "shapes": shapes, "integer_ranges": ranges})


@dataclass(frozen=True)
class Worst:
    """The element that differs most; `error` is None where no tolerance would let it pass."""

    output: str
    index: tuple[int, ...]
    before: str
    after: str
    error: float | None
    passes_at: float | None
    binding: dict[str, int]
    draw: str

    def __str__(self) -> str:
        where = f" at [{','.join(map(str, self.index))}]" if self.index else ""
        how_much = (
            f" (error {self.error:.1e}, would pass at {self.passes_at:.1e})"
            if self.error is not None and self.passes_at is not None
            else ""
        )
        sizes = ", ".join(f"{name}={size}" for name, size in self.binding.items())
        return (
            f"output '{self.output}'{where}: {self.before} became {self.after}{how_much}"
            + f" with {sizes}" * bool(sizes)
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Worst:
        return cls(**{**data, "index": tuple(data["index"])})


@dataclass(frozen=True)
class Rounding:
    """How much an output differs by steps of quantisers, and how much ONNX Runtime's own levels do.

    Both are relative to the largest magnitude of the output.
    """

    error: float
    noise: float

    def __str__(self) -> str:
        return (
            f"equal but for rounding at quantisers: {self.error:.1e}, "
            f"where ONNX Runtime's own levels differ by {self.noise:.1e}"
        )


@dataclass(frozen=True)
class WithinSteps:
    """Which share of the elements of each output lies within one step of its quantiser.

    `parts`: of the results of so many parts of the model, each of which was given what the model
    computed before it; of the outputs of the whole, `at_end` is the share.
    """

    share: float
    parts: int = 0
    at_end: float = 1.0

    def __str__(self) -> str:
        text = f"equal up to one step of quantisers on {100 * self.share:.2f} % of elements"
        return f"{text} of each of {self._of_parts()}" if self.parts else text

    @property
    def shortfall(self) -> str:
        """Why that is not enough."""
        share = f"{100 * (self.at_end if self.parts else self.share):.2f} % of elements"
        more = f", {100 * self.share:.2f} % in one of {self.parts} parts" if self.parts else ""
        return f"{share} lie within a step{more}"

    def _of_parts(self) -> str:
        return f"{self.parts} parts on the model's own bytes ({100 * self.at_end:.2f} % at the end)"


@dataclass(frozen=True)
class ReplayedDecisions:
    """How many decisions the given model made, and how many rounding flips in the other one."""

    decisions: int
    flipped: int

    def __str__(self) -> str:
        if not self.decisions:
            return "equal where each round of its loops begins as in the given model"
        flip = "flips" if self.flipped == 1 else "flip"
        return (
            "equal with the decisions of the given model, of which "
            f"{self.flipped} of {self.decisions} {flip} by rounding"
        )


@dataclass(frozen=True)
class NumericVerdict:
    """The outcome of a comparison.

    `exact`: all bytes were equal. `runs` counts the inputs both models were run on, `elements` the
    elements compared over all runs. `unstable` names the outputs on which the first model disagrees
    with itself, of which only types and shapes were compared, `steady` those that came out alike
    whatever the inputs were, which makes their agreement weak evidence, `empty` those that had no
    element in any run. `rounding`: the models are
    equal but for steps that quantisers made of rounding errors; `not_rounding`: why a difference of
    models with quantisers is more than that. `replayed`: they are equal with the decisions of the
    first one, as those of ArgMax, of which rounding flips some; `not_replayed`: why not. `forced`:
    the ways through branches and loops that were gone besides, `under` the one in which models
    differ. `inner` counts the tensors inside of the models that were compared by name,
    `inner_different` names those that hold other numbers; names may be used anew. `failing` names
    the outputs that differ. `proof` is what a proof shows, whatever numbers do; where it holds and
    numbers settle nothing, the verdict is 'equal' and `despite` is what numbers showed; `proved_of`
    names what is proved if it is not the second model itself.
    `field_run`: by output, what a run over a prime field showed, if one was asked for.
    """

    status: Status
    reason: str = ""
    exact: bool = False
    worst: Worst | None = None
    runtime: str = ""
    outputs: int = 0
    elements: int = 0
    runs: int = 0
    bindings: tuple[dict[str, int], ...] = ()
    unstable: tuple[str, ...] = ()
    steady: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    rounding: Rounding | None = None
    within_steps: WithinSteps | None = None
    not_rounding: str = ""
    replayed: ReplayedDecisions | None = None
    not_replayed: str = ""
    forced: tuple[str, ...] = ()
    under: str = ""
    inner: int = 0
    inner_different: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    proof: ModelProof | None = None
    proved_of: str = ""
    despite: str = ""
    field_run: Mapping[str, str] = field(default_factory=dict)
    output_names: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return self.status == "equal"

    def summary(self) -> str:
        """One line for people."""
        if self.proof is not None and self.proof.holds:
            subject = f"{self.proved_of} " if self.proved_of else ""
            return f"{subject}{self.proof.summary()}; {self.despite or self._numbers()}"
        return self._numbers()

    def _numbers(self) -> str:
        """What runs showed."""
        if self.status == "equal":
            how = self.rounding or self.within_steps or self.replayed or "equal"
            return f"{how}: {', '.join(self._equal_parts())}"
        more = f"; not taken for rounding at quantisers: {self.not_rounding}"
        more = more if self.not_rounding else ""
        more += f"; not for flipped decisions: {self.not_replayed}" if self.not_replayed else ""
        where = f" ({self.under})" if self.under else ""
        return f"{self.status}: {self.reason or self.worst}{where}{more}"

    def with_proof(self, proof: ModelProof) -> NumericVerdict:
        """The verdict with a proof, which counts for more than numbers that runs made differ.

        A model that no runtime runs, or that has another interface, is not what was asked for.
        """
        settled = self.status == "equal" or (self.status == "differs" and bool(self.reason))
        if settled or not proof.holds or proof.conditions:
            return replace(self, proof=proof)
        return replace(self, status="equal", proof=proof, despite=self._numbers())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NumericVerdict:
        worst = Worst.from_json(data["worst"]) if data["worst"] else None
        rounding = Rounding(**data["rounding"]) if data["rounding"] else None
        lists = (
            "bindings",
            "unstable",
            "steady",
            "empty",
            "forced",
            "inner_different",
            "failing",
            "output_names",
        )
        tuples = {name: tuple(data[name]) for name in lists}
        replayed = ReplayedDecisions(**data["replayed"]) if data["replayed"] else None
        proof = ModelProof.from_json(data["proof"]) if data["proof"] else None
        within = WithinSteps(**data["within_steps"]) if data.get("within_steps") else None
        parts: dict[str, Any] = {"worst": worst, "rounding": rounding, "within_steps": within}
        parts |= {"replayed": replayed, "proof": proof}
        return cls(**{**data, **tuples, **parts})

    def _equal_parts(self) -> list[str]:
        counts = ((self.outputs, "output"), (len(self.bindings), "shape"), (self.runs, "run"))
        parts = [f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts]
        parts += [f"{len(self.forced)} more ways through control flow"] if self.forced else []
        parts += [f"{len(self.unstable)} not deterministic"] if self.unstable else []
        parts += [f"{len(self.steady)} alike for all inputs"] if self.steady else []
        parts += [f"{len(self.empty)} without elements"] if self.empty else []
        if self.exact:
            return [*parts, "exact"]
        if self.rounding or self.replayed or self.within_steps:
            return parts
        error = self.worst.error if self.worst else None
        return parts if error is None else [*parts, f"largest error {error:.1e}"]


def unknown(reason: str) -> NumericVerdict:
    return NumericVerdict("unknown", reason=" ".join(reason.split()))
