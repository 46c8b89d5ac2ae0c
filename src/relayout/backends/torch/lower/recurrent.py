"""Recurrent networks: torch's own where it has them, else step by step."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.backends.torch.program.call import Call, Lowering, Several
from relayout.backends.torch.runtime import recurrent as runtime

DEFAULTS = {
    "LSTM": ("sigmoid", "tanh", "tanh"),
    "GRU": ("sigmoid", "tanh"),
    "RNN": ("tanh",),
}
GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""In which order torch has the gates of ONNX."""

LENGTHS, HIDDEN, CELL, PEEPHOLES = 4, 5, 6, 7


def recurrent(call: Call) -> Several:
    kind = call.op_type
    results = 3 if kind == "LSTM" else 2
    activations = _activations(call)
    if _is_torchs(call, activations):
        return Several(_torchs(call, activations), results)
    options = {
        "kind": repr(kind),
        "direction": repr(call.string("direction", "forward")),
        "activations": activations,
        "alphas": list(call.view.floats("activation_alpha") or ()),
        "betas": list(call.view.floats("activation_beta") or ()),
        "clip": None if "clip" not in call.view.node.attributes else call.real("clip", 0.0),
        "linear_before_reset": bool(call.integer("linear_before_reset", 0)),
        "input_forget": bool(call.integer("input_forget", 0)),
        "batch_first": bool(call.integer("layout", 0)),
    }
    cell = call.optional(CELL) if kind == "LSTM" else "None"
    peepholes = call.optional(PEEPHOLES) if kind == "LSTM" else "None"
    given = (*(call.optional(index) for index in range(6)), cell, peepholes)
    return Several(call.helper(runtime.recurrent, *given, **options), results)


def _activations(call: Call) -> list[str]:
    """The names of the activations in lower case, for each direction."""
    attribute = call.view.node.attributes.get("activations")
    directions = 2 if call.string("direction", "forward") == "bidirectional" else 1
    if attribute is None:
        return [*DEFAULTS[call.op_type] * directions]
    return [name.lower() for name in attribute.as_strings()]


def _is_torchs(call: Call, activations: Sequence[str]) -> bool:
    """Whether torch has exactly this network."""
    directions = 2 if call.string("direction", "forward") == "bidirectional" else 1
    default = [*DEFAULTS[call.op_type] * directions]
    is_usual = list(activations) in (
        [default, ["relu"] * directions] if call.op_type == "RNN" else [default]
    )
    is_reset_before = call.op_type != "GRU" or call.integer("linear_before_reset", 0) == 1
    return (
        is_usual
        and is_reset_before
        and not call.has(LENGTHS)
        and not (call.op_type == "LSTM" and call.has(PEEPHOLES))
        and "clip" not in call.view.node.attributes
        and not call.integer("input_forget", 0)
    )


def _torchs(call: Call, activations: Sequence[str]) -> str:
    kind = call.op_type
    name = {"LSTM": "lstm", "GRU": "gru", "RNN": f"rnn_{activations[0]}"}[kind]
    weights = _weights(call)
    cell = call.optional(CELL) if kind == "LSTM" else "None"
    direction = repr(call.string("direction", "forward"))
    given = (f"torch.{name}", call.tensor(0), weights, call.optional(HIDDEN), cell)
    options = {"direction": direction, "batch_first": bool(call.integer("layout", 0))}
    return call.helper(runtime.torchs_recurrent, *given, **options)


def _weights(call: Call) -> str:
    """The list of weights that torch wants, made once where they are constants."""
    text = call.helper(
        runtime.torchs_weights,
        *(call.tensor(1), call.tensor(2), call.optional(3)),
        GATES[call.op_type],
    )
    constant = all(call.constant(index) is not None for index in (1, 2, 3) if call.has(index))
    return call.scope.draft.prepare(f"{call.op_type.lower()}_weights", text) if constant else text


LOWERINGS: dict[str, Lowering] = {"LSTM": recurrent, "GRU": recurrent, "RNN": recurrent}
