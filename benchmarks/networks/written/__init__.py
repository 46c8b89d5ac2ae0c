"""Networks of families that no package here has, written as their papers describe them."""
