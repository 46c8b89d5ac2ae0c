"""Whether tests of C++ kernels can be run here."""

from __future__ import annotations

from relayout.backends.torch.providers.native_region import native_failure


def can_build() -> bool:
    return native_failure() is None
