"""One step of an optimiser for each of several tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def for_each(step: Callable[..., Any], count: int, tensors: Any) -> Any:
    """Results of a step of `count` tensors: operands of a kind lie together, and so do these."""
    length = len(tensors) // count
    rows = [step(*tensors[place::length]) for place in range(length)]
    return [result for column in zip(*rows, strict=True) for result in column]


def adagrad(rate: Any, time: Any, *tensors: Any, decay: float, norm: float, least: float) -> Any:
    rate = rate / (1 + time * decay)

    def step(x: Any, gradient: Any, total: Any) -> Any:
        slope = norm * x + gradient
        summed = total + slope * slope
        return x - rate.to(x.dtype) * slope / (summed.sqrt() + least), summed

    return for_each(step, 3, tensors)


def adam(
    rate: Any,
    time: Any,
    *tensors: Any,
    alpha: float,
    beta: float,
    norm: float,
    norm_after: float,
    least: float,
) -> Any:
    age = time.to(torch.float64)
    corrected = rate * torch.sqrt(1 - beta**age) / (1 - alpha**age)
    rate = torch.where(time > 0, corrected, rate.to(corrected.dtype))

    def step(x: Any, gradient: Any, mean: Any, square: Any) -> Any:
        slope = norm * x + gradient
        new_mean = alpha * mean + (1 - alpha) * slope
        new_square = beta * square + (1 - beta) * slope * slope
        moved = x - rate.to(x.dtype) * new_mean / (new_square.sqrt() + least)
        return (1 - norm_after) * moved, new_mean, new_square

    return for_each(step, 4, tensors)


def momentum(
    rate: Any, time: Any, *tensors: Any, alpha: float, beta: float, norm: float, nesterov: bool
) -> Any:
    share = torch.where(time > 0, beta, 1.0)

    def step(x: Any, gradient: Any, given: Any) -> Any:
        slope = norm * x + gradient
        new = alpha * given + share.to(x.dtype) * slope
        way = slope + alpha * new if nesterov else new
        return x - rate.to(x.dtype) * way, new

    return for_each(step, 3, tensors)
