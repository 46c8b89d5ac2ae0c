"""Loops over functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def loop(
    body: Callable[..., Any],
    count: int | None,
    condition: bool,
    carried: list[Any],
    empty: list[Any],
) -> list[Any]:
    """Run a body until it or the count says to stop; what it gives beyond the state is stacked."""
    collected: list[list[Any]] = [[] for _ in empty]
    step = 0
    while condition and (count is None or step < count):
        condition, *results = body(step, bool(condition), *carried)
        carried = results[: len(carried)]
        for rows, row in zip(collected, results[len(carried) :], strict=True):
            rows.append(row)
        step += 1
    stacked = [
        torch.stack(rows) if rows else none for rows, none in zip(collected, empty, strict=True)
    ]
    return [*carried, *stacked]


def scan(
    body: Callable[..., Any],
    state: list[Any],
    inputs: Sequence[Any],
    input_axes: list[int],
    input_directions: list[int],
    output_axes: list[int],
    output_directions: list[int],
) -> list[Any]:
    """Run a body along an axis of each input."""
    rows = [
        list(reversed(x.unbind(axis))) if backwards else list(x.unbind(axis))
        for x, axis, backwards in zip(inputs, input_axes, input_directions, strict=True)
    ]
    collected: list[list[Any]] = [[] for _ in output_axes]
    for row in zip(*rows, strict=True):
        results = body(*state, *row)
        state = list(results[: len(state)])
        for column, item in zip(collected, results[len(state) :], strict=True):
            column.append(item)
    stacked = [
        torch.stack(column[::-1] if backwards else column, axis)
        for column, axis, backwards in zip(collected, output_axes, output_directions, strict=True)
    ]
    return [*state, *stacked]


def scan_each(
    body: Callable[..., Any],
    state: list[Any],
    inputs: list[Any],
    directions: list[int],
    outputs: int,
) -> list[Any]:
    """Run a body along each entry of a batch, by itself; results have the batch too."""
    axes, ahead = [0] * len(inputs), [0] * outputs
    entries = [
        scan(body, list(entry[: len(state)]), entry[len(state) :], axes, directions, ahead, ahead)
        for entry in zip(*state, *inputs, strict=True)
    ]
    return [torch.stack(column) for column in zip(*entries, strict=True)]
