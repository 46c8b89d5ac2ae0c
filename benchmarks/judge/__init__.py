"""Whole models made at random, through every target and through torch."""
