"""What is known of operators of foreign domains."""

from __future__ import annotations

COMPUTES_ONLY = frozenset(
    ("com.microsoft", op_type)
    for op_type in (
        *("FusedMatMul", "NhwcMaxPool", "QLinearAdd", "QLinearAveragePool", "QLinearConcat"),
        *("QLinearConv", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul"),
        *("QLinearSigmoid", "QLinearSoftmax"),
    )
)
"""Operators of foreign domains that are known to do nothing but compute."""
