"""Small faults put into rules, lowerings and the prover, to see whether tests notice."""
