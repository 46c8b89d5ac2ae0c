"""Activation functions with parameters that torch's own lack."""

from __future__ import annotations

from typing import Any

import torch


def selu(x: Any, alpha: float, gamma: float) -> Any:
    return gamma * torch.where(x > 0, x, alpha * torch.expm1(x))


def shrink(x: Any, bias: float, bound: float) -> Any:
    inner = torch.where(x > bound, x - bias, torch.zeros_like(x))
    return torch.where(x < -bound, x + bias, inner)


def p_relu(x: Any, slope: Any) -> Any:
    return torch.where(x < 0, slope * x, x)
