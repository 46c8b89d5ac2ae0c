"""Programs as Python modules: written as text, loaded, with their helpers and weights."""
