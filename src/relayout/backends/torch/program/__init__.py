"""What written modules are made of: calls, functions, names and numbers as Python text."""
