"""Writes the module that does what a program describes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.lower.registry import LOWERINGS, check_lowerings
from relayout.backends.torch.modules.helpers import closure
from relayout.backends.torch.modules.weights import stored
from relayout.backends.torch.program.draft import WEIGHTS, ModuleDraft
from relayout.backends.torch.program.dtypes import FULL, Precision
from relayout.backends.torch.program.program import Program, RunsOutsideTorch
from relayout.backends.torch.program.scope import Scope, tuple_text
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.runtime.graph import Replayed
from relayout.backends.torch.runtime.inductor import FrozenForward, InductorKernel
from relayout.backends.torch.runtime.model import Model, read_weights
from relayout.graph.read import constant_of, shape_of
from relayout.layout.transport import Array

IMPORTS = """\
from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional as F
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A written module and the weights it loads."""

    text: str
    weights: dict[str, ir.TensorProtocol]
    precision: Precision

    def arrays(self) -> dict[str, Array]:
        return {name: stored(tensor, self.precision) for name, tensor in self.weights.items()}


def write_source(program: Program, weights_file: str = "") -> Source:
    """The module; `weights_file` is the name of the file of weights that will be beside it."""
    check_lowerings(program.model)
    draft = ModuleDraft(LOWERINGS, program.precision)
    draft.helper(Model)
    draft.helper(read_weights)
    forward, defaults = _forward(program, draft)
    functions = [*draft.functions, forward]
    run = _run(program, draft)
    parts = [
        f'"""{_heading(program)}"""',
        IMPORTS.rstrip(),
        _interface(program, defaults),
        *closure(draft.helpers.values()).values(),
        written_preparation(draft, functions),
        *functions,
        LOAD.format(device=program.device, file=weights_file, forward=run, mode=_mode(program)),
    ]
    return Source("\n\n\n".join(parts), draft.weights, program.precision)


LOAD = '''\
def load(weights=None, device="{device}"):
    """The model with its weights, those of the file beside this module unless others are given."""
    if weights is None:
        weights = read_weights(Path(__file__).with_name("{file}"))
    return Model(
        {forward},
        prepare,
        weights,
        inputs=INPUTS,
        outputs=OUTPUTS,
        device=device,
        mode={mode},
    )
'''


def _run(program: Program, draft: ModuleDraft) -> str:
    """The function that a model runs: on CUDA as a graph, where all lengths are known."""
    forward = "forward"
    if program.is_frozen:
        forward = f"{draft.helper(FrozenForward)}(forward)"
    elif program.is_joined:
        forward = f"{draft.helper(InductorKernel)}(forward, dynamic=False)"
    return f"{draft.helper(Replayed)}({forward})" if is_replayed(program) else forward


def _mode(program: Program) -> str:
    """The mode of torch for a call; C++ kernels need none, and to enter one takes time."""
    is_outside = all(isinstance(step.realisation, RunsOutsideTorch) for step in program.steps)
    return "contextlib.nullcontext" if is_outside else "torch.inference_mode"


def is_replayed(program: Program) -> bool:
    """Whether a program runs as a CUDA graph."""
    return program.device.startswith("cuda") and has_known_lengths(program)


def has_known_lengths(program: Program) -> bool:
    """Whether all lengths of a program are known, and nothing in it runs now and then."""
    nodes = list(program.model.graph)
    values = [*program.model.graph.inputs, *(value for node in nodes for value in node.outputs)]
    has_bodies = any(
        attribute.type in {ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS}
        for node in nodes
        for attribute in node.attributes.values()
    )
    return all(_is_of_known_lengths(value) for value in values) and not has_bodies


def _is_of_known_lengths(value: ir.Value) -> bool:
    shape = shape_of(value)
    return shape is not None and all(isinstance(length, int) for length in shape)


def _forward(program: Program, draft: ModuleDraft) -> tuple[str, dict[ir.Value, str]]:
    """The function that runs the graph, and the weights that inputs have as defaults."""
    graph = program.model.graph
    scope = Scope(draft, graph.opset_imports)
    defaults: dict[ir.Value, str] = {}
    parameters = [WEIGHTS]
    for value in graph.inputs:
        name = draft.names.fresh(value.name or "x")
        parameters.append(name)
        scope.forms[value] = name
        if value.const_value is not None:
            defaults[value] = draft.weight(value.const_value, f"{name}_default")
        if _is_reduced(value, draft.precision):
            scope.state(f"{name} = {name}.to({_dtype(value, draft.precision)})")
    for step in program.steps:
        step.realisation.write(step.nodes, scope)
    returned = [
        f"{scope.tensor(value)}{'.to(torch.float32)' * _is_reduced(value, draft.precision)}"
        for value in graph.outputs
    ]
    lines = scope.finished(tuple_text(returned))
    return "\n".join([f"def forward({', '.join(parameters)}):", *indented(lines)]), defaults


def _is_reduced(value: ir.Value, precision: Precision) -> bool:
    is_tensor = value.type is None or isinstance(value.type, ir.TensorType)
    return is_tensor and value.dtype == ir.DataType.FLOAT != precision.reduced


def _dtype(value: ir.Value, precision: Precision) -> str:
    return f"torch.{precision.name(value.dtype or ir.DataType.FLOAT)}"


def written_preparation(draft: ModuleDraft, functions: list[str]) -> str:
    """The function that brings weights into the form kernels need, and drops unused ones."""
    lines = [f"{WEIGHTS}.{name} = {expression}" for name, expression in draft.prepared]
    read = {name for text in functions for name in re.findall(rf"\b{WEIGHTS}\.(\w+)", text)}
    named = {name for text in lines for name in re.findall(rf"\b{WEIGHTS}\.(\w+)", text)}
    dropped = [name for name in draft.weights if name in named and name not in read]
    lines += [f"del {WEIGHTS}.{name}" for name in dropped]
    body = indented(['"""What is made of the weights once."""', *lines])
    return "\n".join([f"def prepare({WEIGHTS}):", *body])


def _interface(program: Program, defaults: dict[ir.Value, str]) -> str:
    graph = program.model.graph
    inputs = [_port(value, program.precision, defaults) for value in graph.inputs]
    outputs = [f"{value.name!r}: {_element(value)!r}," for value in graph.outputs]
    return "\n".join(
        [
            "# By name: the types that are taken, the shape, and the weight that is the default.",
            "INPUTS = {",
            *indented(inputs),
            "}",
            "# By name: the type of the elements.",
            "OUTPUTS = {",
            *indented(outputs),
            "}",
        ]
    )


def _port(value: ir.Value, precision: Precision, defaults: dict[ir.Value, str]) -> str:
    default = defaults.get(value)
    name = None if default is None else default.removeprefix(f"{WEIGHTS}.")
    is_tensor = value.type is None or isinstance(value.type, ir.TensorType)
    dtypes = ""
    if is_tensor and value.dtype is not None:
        own = f"torch.{FULL.name(value.dtype)},"
        reduced = f" {_dtype(value, precision)}" if _is_reduced(value, precision) else ""
        dtypes = own + reduced
    return f"{value.name!r}: (({dtypes}), {shape_of(value)!r}, {name!r}),"


def _element(value: ir.Value) -> str:
    return "" if value.dtype is None else value.dtype.name.lower()


def _heading(program: Program) -> str:
    """The docstring of the module."""
    graph = program.model.graph
    lines = [f"{program.name}, written by relayout; needs torch alone.", ""]
    lines += ["model = load()", f"outputs = model({_example(graph)})  # a dict by name"]
    return "\n".join(line.replace("\\", "\\\\").replace('"""', "'''") for line in lines) + "\n"


def _example(graph: ir.Graph) -> str:
    names = [value.name or "" for value in graph.inputs if constant_of(value) is None]
    return ", ".join(name if name.isidentifier() else "..." for name in names)
