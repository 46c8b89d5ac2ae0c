"""Functions that written modules contain, copied from here as they are needed.

They import nothing of relayout but each other, and use torch, `F` and the standard library only.
"""
