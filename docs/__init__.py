"""The documents, and what writes the parts of them that are made from the code: `make docs`."""
