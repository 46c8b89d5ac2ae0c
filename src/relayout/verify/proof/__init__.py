"""Proofs that two models compute the same function, by what operators mean."""
