"""How results are run or written: one room a backend, above the optimiser."""
