"""From a model to its result: read, prepared, optimised in several attempts, verified, written."""
