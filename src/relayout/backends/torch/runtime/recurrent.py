"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F


def torchs_weights(w: Any, r: Any, b: Any, gates: Sequence[int]) -> list[Any]:
    """The weights of each direction with the gates in torch's order."""
    hidden = r.shape[2]
    found = []
    for direction in range(w.shape[0]):
        parts = [w[direction], r[direction]]
        if b is not None:
            parts += list(b[direction].chunk(2))
        for part in parts:
            rows = part.split(hidden)
            found.append(torch.cat([rows[gate] for gate in gates]).contiguous())
    return found


def torchs_recurrent(
    network: Any,
    x: Any,
    weights: list[Any],
    hidden: Any,
    cell: Any,
    *,
    direction: str,
    batch_first: bool,
) -> Any:
    """A network that torch has, in ONNX's shapes: time, direction, batch, features."""
    x = x.transpose(0, 1) if batch_first else x
    x = x.flip(0) if direction == "reverse" else x
    directions = 2 if direction == "bidirectional" else 1
    has_biases = len(weights) == 4 * directions
    zeros = torch.zeros(directions, x.shape[1], weights[1].shape[1], dtype=x.dtype, device=x.device)
    states = [
        zeros if s is None else s.transpose(0, 1) if batch_first else s for s in (hidden, cell)
    ]
    is_lstm = network is torch.lstm
    state = [state.contiguous() for state in states] if is_lstm else states[0].contiguous()
    results = network(x, state, weights, has_biases, 1, 0.0, False, directions == 2, False)
    y, last = results[0], results[1:]
    y = y.flip(0) if direction == "reverse" else y
    y = y.unflatten(2, (directions, -1))
    if batch_first:
        return y.transpose(0, 1), *(state.transpose(0, 1) for state in last)
    return y.permute(0, 2, 1, 3), *last


def recurrent(
    x: Any,
    w: Any,
    r: Any,
    b: Any,
    lengths: Any,
    hidden: Any,
    cell: Any,
    peepholes: Any,
    *,
    kind: str,
    direction: str,
    activations: list[str],
    alphas: list[float],
    betas: list[float],
    clip: float | None,
    linear_before_reset: bool,
    input_forget: bool,
    batch_first: bool,
) -> Any:
    """Any network of ONNX, one step after the other."""
    if batch_first:
        x = x.transpose(0, 1)
        hidden, cell = (s if s is None else s.transpose(0, 1) for s in (hidden, cell))
    directions, size = w.shape[0], r.shape[2]
    zeros = torch.zeros(directions, x.shape[1], size, dtype=x.dtype, device=x.device)
    hidden, cell = (zeros if s is None else s for s in (hidden, cell))
    count = len(activations) // directions
    step = {"LSTM": lstm_step, "GRU": gru_step, "RNN": rnn_step}[kind]
    ys, hs, cs = [], [], []
    for d in range(directions):
        functions = [
            activation(name, alphas[i : i + 1], betas[i : i + 1], clip)
            for i, name in enumerate(activations)
        ][d * count : (d + 1) * count]
        bias = torch.zeros(2 * w.shape[1], dtype=x.dtype, device=x.device) if b is None else b[d]
        given = (w[d], r[d], bias, None if peepholes is None else peepholes[d])
        network = (step, given, functions, (linear_before_reset, input_forget))
        backwards = direction == "reverse" or d == 1
        y, h, c = run_direction(x, lengths, hidden[d], cell[d], network, backwards)
        ys.append(y)
        hs.append(h)
        cs.append(c)
    y, h, c = torch.stack(ys, 1), torch.stack(hs), torch.stack(cs)
    if batch_first:
        y, h, c = y.permute(2, 0, 1, 3), h.transpose(0, 1), c.transpose(0, 1)
    return (y, h, c) if kind == "LSTM" else (y, h)


def run_direction(x: Any, lengths: Any, h: Any, c: Any, network: Any, backwards: bool) -> Any:
    """Steps through time; behind the end of a sequence its state stays and its output is zero."""
    step, *given = network
    rows: list[Any] = [None] * x.shape[0]
    for t in reversed(range(x.shape[0])) if backwards else range(x.shape[0]):
        new_h, new_c = step(x[t], h, c, *given)
        rows[t] = new_h
        if lengths is not None:
            is_running = (t < lengths).unsqueeze(1)
            rows[t] = torch.where(is_running, new_h, torch.zeros_like(new_h))
            new_h, new_c = torch.where(is_running, new_h, h), torch.where(is_running, new_c, c)
        h, c = new_h, new_c
    return torch.stack(rows), h, c


def activation(name: str, alpha: list[float], beta: list[float], clip: float | None) -> Any:
    """A function by its ONNX name, with what comes to it clipped first."""
    a, b = (values[0] if values else None for values in (alpha, beta))
    functions = {
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "relu": torch.relu,
        "softsign": F.softsign,
        "softplus": F.softplus,
        "affine": lambda x: (1.0 if a is None else a) * x + (0.0 if b is None else b),
        "leakyrelu": lambda x: F.leaky_relu(x, 0.01 if a is None else a),
        "thresholdedrelu": lambda x: F.threshold(x, 1.0 if a is None else a, 0.0),
        "scaledtanh": lambda x: (
            (1.0 if a is None else a) * torch.tanh((1.0 if b is None else b) * x)
        ),
        "hardsigmoid": lambda x: ((0.2 if a is None else a) * x + (0.5 if b is None else b)).clamp(
            0, 1
        ),
        "elu": lambda x: F.elu(x, 1.0 if a is None else a),
    }
    function = functions[name]
    return function if clip is None else lambda x: function(x.clamp(-clip, clip))


def lstm_step(x: Any, h: Any, c: Any, weights: Any, functions: Any, flags: Any) -> Any:
    w, r, b, p = weights
    f, g, k = functions
    first, second = b.chunk(2)
    i, o, forget, new = (F.linear(x, w, first) + F.linear(h, r, second)).chunk(4, -1)
    p_i, p_o, p_f = (0, 0, 0) if p is None else p.chunk(3)
    i = f(i + p_i * c)
    forget = 1 - i if flags[1] else f(forget + p_f * c)
    c = forget * c + i * g(new)
    return f(o + p_o * c) * k(c), c


def gru_step(x: Any, h: Any, c: Any, weights: Any, functions: Any, flags: Any) -> Any:
    w, r, b, _ = weights
    f, g = functions
    w_z, w_r, w_h = F.linear(x, w, b[: w.shape[0]]).chunk(3, -1)
    r_z, r_r, r_h = r.chunk(3)
    b_z, b_r, b_h = b[w.shape[0] :].chunk(3)
    z, reset = f(w_z + F.linear(h, r_z, b_z)), f(w_r + F.linear(h, r_r, b_r))
    inner = reset * F.linear(h, r_h, b_h) if flags[0] else F.linear(reset * h, r_h, b_h)
    return (1 - z) * g(w_h + inner) + z * h, c


def rnn_step(x: Any, h: Any, c: Any, weights: Any, functions: Any, flags: Any) -> Any:
    w, r, b, _ = weights
    del flags
    first, second = b.chunk(2)
    return functions[0](F.linear(x, w, first) + F.linear(h, r, second)), c
