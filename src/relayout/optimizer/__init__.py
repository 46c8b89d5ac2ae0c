"""The road of a model: read, prepared, optimised in several attempts, verified, written."""
