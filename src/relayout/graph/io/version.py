"""The version of the package, which what it writes can carry."""

from __future__ import annotations

__version__ = "0.1.0"
