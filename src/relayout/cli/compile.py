"""relayout compile: a model as a Python module that needs torch alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from relayout.cli.terminal import DONE, REFUSED, add_numbers, numeric_options, progress, show

DESCRIPTION = (
    "Write a model as one readable Python module, with its weights beside it in the safetensors "
    "format; compare what the module computes with the model; write it only if that is equal."
)
DTYPE_HELP = "compute what is float32 in this type instead; inputs and outputs keep theirs"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compile", help="write a model as a module for torch", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.py")
    parser.add_argument("--target", choices=("torch",), default="torch")
    add_device(parser)
    parser.add_argument("--plain", action="store_true", help="one statement a node, nothing fused")
    parser.add_argument("--no-verify", action="store_true", help="write without comparing numbers")
    add_numbers(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Where and in which type a compiled model runs."""
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), help=DTYPE_HELP)


def run(options: argparse.Namespace) -> int:
    with progress() as stage:
        stage("compiling")
        from relayout.backends.torch.choose.tuning import tuned
        from relayout.backends.torch.compiling import program_of, write_module
        from relayout.backends.torch.modules.loading import compile_program
        from relayout.backends.torch.verification import compare_compiled

        program = program_of(
            options.model, device=options.device, dtype=options.dtype, dims=dict(options.dim)
        )
        if not options.plain:
            stage("choosing kernels")
            program, _ = tuned(program)
        verdict = None
        if not options.no_verify:
            stage("comparing numbers")
            model = compile_program(program)
            numbers = numeric_options(options)
            verdict = compare_compiled(Path(options.model), model, numbers, options.dtype)
        accepted = verdict is None or verdict.equal
        stage("writing")
        files = write_module(program, options.output) if accepted else ()
    told = "not verified, as asked" if verdict is None else verdict.summary()
    verified = verdict is not None and verdict.equal
    record = {"files": [str(file) for file in files], "verdict": told, "verified": verified}
    written = [f"wrote {' and '.join(str(file) for file in files)}"] if files else []
    show(options, record, [*written, told])
    return DONE if accepted else REFUSED
