"""Which order each tensor is stored in: the problem, its exact solution, and its proof."""
