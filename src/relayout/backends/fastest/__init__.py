"""Which way to run a model is the fastest on this machine: built, timed in turns, verified."""
