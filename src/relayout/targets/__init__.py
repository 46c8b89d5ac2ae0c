"""The runtimes a model is made for."""
