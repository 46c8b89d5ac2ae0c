"""relayout compile: a model as a Python module for torch, or as a file for LiteRT."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.names import NameOption, backends
from relayout.cli.streams import model_of
from relayout.cli.terminal import add_numbers, numeric_options, progress, show

DESCRIPTION = (
    "Write a model for another runtime: as one readable Python module for torch, with its weights "
    "beside it in the safetensors format, or as one .tflite file for LiteRT; compare what it "
    "computes with the model; write it only if that is equal."
)
DTYPE_HELP = "compute what is float32 in this type instead; inputs and outputs keep theirs"
EXAMPLE = "relayout compile in.onnx -o in_torch.py"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compile", help="write a model for torch or LiteRT", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.py|OUT.tflite")
    parser.add_argument("--target", action=NameOption, named=backends, about="who is to run it")
    add_device(parser)
    parser.add_argument("--plain", action="store_true", help="one statement a node, nothing fused")
    parser.add_argument("--no-verify", action="store_true", help="write without comparing numbers")
    add_numbers(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run, writes_model=True)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Where and in which type a compiled model runs."""
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), help=DTYPE_HELP)


def run(options: argparse.Namespace) -> int:
    with progress() as stage:
        from relayout.backends.options import CompileOptions
        from relayout.backends.registry import BACKENDS, TORCH_BACKEND

        numbers = None if options.no_verify else numeric_options(options)
        settings = CompileOptions(
            options.device,
            options.dtype,
            tune=not options.plain,
            dims=dict(options.dim),
            shapes=dict(options.shape),
            inputs=numbers,
        )
        backend = BACKENDS[options.target] if options.target else TORCH_BACKEND
        compilation = backend.writer(model_of(options.model), options.output, settings, stage)
    verdict, files = compilation.verdict, compilation.files
    summary = "not verified, as asked" if verdict is None else verdict.summary()
    verified = verdict is not None and verdict.equal
    record = {"files": [str(file) for file in files], "verdict": summary, "verified": verified}
    written = [f"wrote {' and '.join(str(file) for file in files)}"] if files else []
    details = dict(compilation.details)
    written += [", ".join(f"{what}: {count}" for what, count in details.items())] if details else []
    show(options, record | {"details": details}, [*written, summary])
    return DONE if compilation.accepted else REFUSED
