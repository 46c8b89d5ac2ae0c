"""Shapes: what inference says of a model, and of one node."""
