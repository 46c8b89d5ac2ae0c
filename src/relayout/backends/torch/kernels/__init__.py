"""Groups of nodes as fused kernels: what they are, how they are written, which is fastest here."""
