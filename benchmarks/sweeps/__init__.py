"""Sweeps of one folder of models in all the ways that have to be equal."""
