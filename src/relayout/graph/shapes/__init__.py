"""Shapes: what is inferred for a model, and for one node."""
