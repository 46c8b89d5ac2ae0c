"""The table of the document that proposes automatic NHWC, measured again.

It gives whole seconds of ResNet-101 on a V100 with mixed precision at three batch sizes, channels
first and by automatic NHWC. Its benchmark calls the network 1000 times and brings the scores to the
host each time; so it is here, with the median of several rounds and their range. Both models come
from relayout: the given one, and what `auto-nhwc` makes of it, each with its tensors stored as the
model has them (eager), and compiled by Inductor, which may not choose layouts itself here. What
`relayout.compile` makes of the given model, in layouts of its own choice, stands beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
import torch

import relayout
from benchmarks.resnet101.forms import image_for, onnx_model
from benchmarks.resnet101.layers import Network
from benchmarks.resnet101.measure import Run, Times, in_turns
from benchmarks.resnet101.stored import StoredNetwork

CALLS = 1000
"""How often the document's benchmark calls the network, as its figures suggest."""
PUBLISHED = {16: (14, 13), 32: (24, 22), 64: (44, 38)}
"""Seconds on a V100 by batch size: channels first, automatic NHWC."""
NCHW, NHWC, OWN = "NCHW", "auto NHWC", "relayout.compile"
EAGER, COMPILED = "eager", "compiled"
HEAD = (
    "| batch | way | NCHW ms | 10% to 90% | auto NHWC ms | 10% to 90% | NCHW / auto NHWC "
    f"| seconds of {CALLS} calls | document, V100 | its ratio | relayout.compile ms |"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is measured, and on what."""

    device: str
    batches: Sequence[int]
    rounds: int
    ways: Sequence[str] = (EAGER, COMPILED)
    side: int = 224

    @property
    def dtype(self) -> torch.dtype:
        return torch.float16 if self.device == "cuda" else torch.float32


@dataclass(frozen=True, slots=True)
class Line:
    """Both layouts at one batch size, run one way."""

    batch: int
    way: str
    first: Times
    last: Times
    apart: float
    """How far the scores of both are apart, relative to their length."""
    own: Times | None = None
    """By `relayout.compile`."""

    def __str__(self) -> str:
        published = PUBLISHED.get(self.batch)
        seconds = [f"{CALLS * times.median:.1f}" for times in (self.first, self.last)]
        cells = [
            str(self.batch),
            self.way,
            *_cells(self.first),
            *_cells(self.last),
            f"{self.first.longer_than(self.last):.2f}",
            " / ".join(seconds),
            "-" if published is None else "{} / {} s".format(*published),
            "-" if published is None else f"{published[0] / published[1]:.2f}",
            "-" if self.own is None else _cells(self.own)[0],
        ]
        return f"| {' | '.join(cells)} |"


def _cells(times: Times) -> tuple[str, str]:
    return f"{1e3 * times.median:.3f}", f"{1e3 * times.low:.3f} to {1e3 * times.high:.3f}"


def table(lines: Sequence[Line]) -> list[str]:
    apart = max((line.apart for line in lines), default=0.0)
    rule = "|" + "---|" * HEAD[1:].count("|")
    return [HEAD, rule, *map(str, lines), "", f"Scores of both are at most {apart:.1e} apart."]


def measured(net: Network, setting: Setting) -> Iterator[Line]:
    """Both layouts side by side, a line for each batch size and way."""
    for batch in setting.batches:
        models = _models(onnx_model(net, batch, setting.side))
        image = torch.from_numpy(image_for(batch, setting.side)).to(setting.device, setting.dtype)
        for way in setting.ways:
            runs = {name: _running(model, way, image) for name, model in models.items()}
            if way == COMPILED:
                runs[OWN] = _running_own(models[NCHW], setting.device, image)
            with torch.no_grad():
                first, last = (runs[name]().float() for name in (NCHW, NHWC))
                times = in_turns(runs, _seconds(setting.device), setting.rounds)
            apart = float((first - last).norm() / first.norm())
            yield Line(batch, way, times[NCHW], times[NHWC], apart, times.get(OWN))


def _models(given: onnx.ModelProto) -> Mapping[str, onnx.ModelProto]:
    """Weights as OHWI are what torch's kernels read channels last."""
    result = relayout.optimize(given, target="nhwc-ohwi", strategy="auto-nhwc", verify=False)
    return {NCHW: given, NHWC: result.model}


def _running(model: onnx.ModelProto, way: str, image: torch.Tensor) -> Run:
    module = StoredNetwork(model).to(image.device, image.dtype).eval()
    if way == COMPILED:
        torch._dynamo.reset()  # noqa: SLF001 - there is no public name
        module = torch.compile(module, options={"layout_optimization": False})
    return lambda: module(image).cpu()


def _running_own(model: onnx.ModelProto, device: str, image: torch.Tensor) -> Run:
    """Its inputs and outputs keep their types, whatever it computes in."""
    dtype = None if image.dtype == torch.float32 else str(image.dtype).removeprefix("torch.")
    compiled = relayout.compile(model, device=device, dtype=dtype, verify=False)
    given, output = image.float(), model.graph.output[0].name

    def run() -> torch.Tensor:
        return compiled(given)[output].cpu()

    return run


def _seconds(device: str) -> Callable[[Run], float]:
    """Time on the clock of one call; on a GPU of several, which bringing the scores home ends."""
    repeats = 10 if device == "cuda" else 1

    def seconds(run: Run) -> float:
        since = time.perf_counter()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - since) / repeats

    return seconds
