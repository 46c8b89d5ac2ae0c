"""Verification by numbers; it shares no code with the optimiser it judges."""

from relayout.verify.isolated import compare_isolated
from relayout.verify.numeric import compare
from relayout.verify.verdict import NumericOptions, NumericVerdict, Worst

__all__ = ["NumericOptions", "NumericVerdict", "Worst", "compare", "compare_isolated"]
