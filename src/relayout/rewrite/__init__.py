"""Local rewrites, applied until none is left to apply."""
