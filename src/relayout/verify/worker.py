"""The child of an isolated comparison: a request on its input, a verdict on its output."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeAlias

import onnx

from relayout.verify.child import FORESEE
from relayout.verify.proof.attempt import attempted, foreseen
from relayout.verify.proof.proof import Foreseen
from relayout.verify.proof.verdict import ModelProof
from relayout.verify.verdict import NumericOptions, NumericVerdict, unknown

Examine: TypeAlias = Callable[[Mapping[str, Any], NumericOptions], NumericVerdict]
"""From a request to a verdict."""

Foresee: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Called with what will be asked about, before it is."""

Reply: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From a request to what answers it."""

STANDARD_INPUT = 0
GIGABYTE = 1e9
PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>: the signal that a process gets when its parent ends."""


def limit_memory(limit: int | None) -> None:
    """Limits the memory of this process, where the system can; mapped files do not count."""
    if limit is None or sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - no such module on Windows

    _, hardest = resource.getrlimit(resource.RLIMIT_DATA)
    ceiling = limit if hardest == resource.RLIM_INFINITY else min(limit, hardest)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hardest))


@contextmanager
def _limited_memory(limit: int) -> Iterator[None]:
    """As `limit_memory`, until the block ends: what is started after it may need more."""
    if sys.platform == "win32":
        yield
        return
    import resource  # noqa: PLC0415 - no such module on Windows

    known = resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(limit)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, known)


def end_with_parent(parent: int | None = None) -> None:
    """Let Linux end this process with the one that started it, even in the middle of a kernel.

    With the id of that one, at once if it has ended already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        sys.exit(f"the process {parent} that started this one has ended")


def _end_with_the_line() -> None:
    """End when the line to the parent closes, which it does on every system when that one ends."""
    # Not through sys.stdin, whose lock this thread would still hold when Python shuts down.
    while os.read(STANDARD_INPUT, 1):
        pass
    os._exit(1)


def serve(reply: Reply, foresee: Foresee | None = None) -> None:
    """Read a request, write what there is to reply.

    A line before it may tell what will be asked about.
    """
    end_with_parent()
    request = json.loads(sys.stdin.readline())
    if foresee is not None and FORESEE in request:
        with _limited_memory(request["memory"]):
            foresee(request[FORESEE])
        request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_line, daemon=True).start()
    limit_memory(request["memory"])
    output = _claim_output()
    output.write(json.dumps(reply(request)))
    output.close()


def answer(examine: Examine, foresee: Foresee | None = None) -> None:
    """Read a request, examine what it names, write the verdict."""

    def verdict(request: Mapping[str, Any]) -> Mapping[str, Any]:
        return examine(request, NumericOptions.from_json(request["options"])).to_json()

    serve(verdict, foresee)


def _claim_output() -> IO[str]:
    """Standard output for the verdict alone: whatever the runtimes print goes to the errors."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


@dataclass
class _TwoFiles:
    """Compares two files, of which the first may be read before there is a second."""

    begun: Foreseen | None = None

    def foresee(self, request: Mapping[str, Any]) -> None:
        before, new = Path(request["before"]), frozenset(request["new"])
        self.begun = foreseen(before, new, fix_defaults=request["fix_defaults"])

    def examine(self, request: Mapping[str, Any], options: NumericOptions) -> NumericVerdict:
        return _two_files(request, options, self._taken())

    def _taken(self) -> Foreseen | None:
        begun, self.begun = self.begun, None
        return begun


def _two_files(
    request: Mapping[str, Any], options: NumericOptions, begun: Foreseen | None = None
) -> NumericVerdict:
    before, after = Path(request["before"]), Path(request["after"])
    proof = attempted(before, after, fix_defaults=options.fix_defaults, begun=begun)
    del begun  # Runtimes need the memory.
    if request["memory"] is not None and request["stored"] > request["memory"]:
        return _by_proof_alone(proof, request["stored"], request["memory"])
    # What is not run needs no runtimes.
    from relayout.verify.numeric import Extent, examine  # noqa: PLC0415

    verdict = examine(before, after, options, Extent.of(proof))
    verdict = verdict.with_proof(proof)
    return _with_field(verdict, before, after) if request.get("field") else verdict


def _by_proof_alone(proof: ModelProof, stored: int, memory: int) -> NumericVerdict:
    """The verdict on models that do not fit into memory, so that they are not run."""
    sizes = (
        f"both models take {stored / GIGABYTE:.3g} GB and {memory / GIGABYTE:.3g} GB are allowed"
    )
    names = tuple(output.name for output in proof.outputs)
    if not proof.holds or proof.conditions:
        reason = f"{sizes}, so they were not run; {proof.summary()}"
        return replace(unknown(reason), proof=proof, output_names=names)
    despite = f"by proof alone: {sizes}, so they were not run"
    return NumericVerdict("equal", proof=proof, despite=despite, output_names=names)


def _with_field(verdict: NumericVerdict, before: Path, after: Path) -> NumericVerdict:
    """The verdict with what a run over a prime field shows, and the names of all outputs."""
    from relayout.verify.field.run import field_compare  # noqa: PLC0415 - few ask for it

    models = [onnx.load(path) for path in (before, after)]
    names = tuple(output.name for output in models[0].graph.output)
    found = {}
    if verdict.status != "differs" or not verdict.reason:
        outputs = field_compare(*models).outputs
        found = {one.name: ": ".join(filter(None, (one.status, one.reason))) for one in outputs}
    return replace(verdict, field_run=found, output_names=names)


if __name__ == "__main__":
    files = _TwoFiles()
    answer(files.examine, files.foresee)
