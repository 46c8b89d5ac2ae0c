"""PyTorch as a runtime: a model becomes one readable Python module."""
