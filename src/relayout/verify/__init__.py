"""Verification by numbers; it shares no code with the optimiser it judges."""
