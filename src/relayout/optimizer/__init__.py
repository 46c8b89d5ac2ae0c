"""From a model to its result: read, prepared, optimised in rounds, verified, written."""
