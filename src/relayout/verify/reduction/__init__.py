"""The smallest parts of two models that still differ."""
