"""A sweep as a job array of Slurm or a workflow of Snakemake, for clusters without Ray.

Both run `relayout sweep --part N/M`, once for each part, and last the sweep as a whole, which finds
everything done and writes the table and the page.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relayout.sweep.run import ModelSweep

MOST_PARTS = 1000
"""Clusters seldom take larger arrays."""

LIST = "sources.txt"


@dataclass(frozen=True, slots=True)
class ClusterSweep:
    """A sweep that is to be run elsewhere; all paths are those of a file system that is shared."""

    sweep: ModelSweep
    options: Sequence[str]
    gigabytes: float | None = None
    """What a process may use for a model."""

    @property
    def out(self) -> Path:
        return self.sweep.out.absolute()

    @property
    def parts(self) -> int:
        return max(1, min(MOST_PARTS, len(self.sweep.jobs)))

    @property
    def minutes(self) -> int:
        """What a part may take: each of its models as long as allowed."""
        models = math.ceil(len(self.sweep.jobs) / self.parts)
        return math.ceil(models * self.sweep.call.seconds / 60) + 1

    def command(self, part: str = "") -> str:
        """The call of a part, or of the whole sweep."""
        words = ["relayout", "sweep", f"@{self.out / LIST}", "-o", str(self.out)]
        told = f" --part {part}" if part else ""
        return f"{shlex.join(words)}{told} {shlex.join(self.options)}"

    def write(self, name: str, text: str) -> Path:
        """Write a script, and the list of models that it reads."""
        models = [job.model for job in self.sweep.jobs]
        lines = [shlex.join([str(model.path), *model.options]) for model in models]
        (self.out / LIST).write_text("\n".join(lines) + "\n")
        (self.out / name).write_text(text)
        return self.out / name


def slurm(cluster: ClusterSweep) -> Path:
    memory = "" if cluster.gigabytes is None else f"#SBATCH --mem={_megabytes(cluster)}M\n"
    after = shlex.quote(str(cluster.out / "finish.sh"))
    finish = f"#!/bin/bash\n#SBATCH --job-name=relayout-table\n{cluster.command()}\n"
    cluster.write("finish.sh", finish)
    return cluster.write(
        "sweep.sbatch",
        "#!/bin/bash\n"
        f"# sbatch --parsable sweep.sbatch, then: sbatch --dependency=afterany:ID {after}\n"
        "#SBATCH --job-name=relayout-sweep\n"
        f"#SBATCH --array=1-{cluster.parts}\n"
        f"#SBATCH --time={cluster.minutes}\n"
        f"{memory}"
        f"{cluster.command(f'$SLURM_ARRAY_TASK_ID/{cluster.parts}')}\n",
    )


def snakemake(cluster: ClusterSweep) -> Path:
    # A part with a refused model ends with 1, which is no failure of the workflow.
    done = str(cluster.out / "parts")
    return cluster.write(
        "Snakefile",
        f"PARTS = range(1, {cluster.parts + 1})\n\n"
        "rule all:\n"
        f"    input: expand({done + '/{part}.done'!r}, part=PARTS)\n"
        f"    shell: {_lenient(cluster.command())!r}\n\n"
        "rule part:\n"
        f"    output: touch({done + '/{part}.done'!r})\n"
        f"    resources: runtime={cluster.minutes}{_memory(cluster)}\n"
        f"    shell: {_lenient(cluster.command(f'{{wildcards.part}}/{cluster.parts}'))!r}\n",
    )


def _lenient(command: str) -> str:
    return f"{command} || test $? -eq 1"


def _memory(cluster: ClusterSweep) -> str:
    return "" if cluster.gigabytes is None else f", mem_mb={_megabytes(cluster)}"


def _megabytes(cluster: ClusterSweep) -> int:
    """What a part may use: the process of a model, the one that compares, and the sweep itself."""
    return math.ceil(1000 * (2 * (cluster.gigabytes or 0) + 1))


EMITTERS: Mapping[str, Callable[[ClusterSweep], Path]] = {"slurm": slurm, "snakemake": snakemake}
