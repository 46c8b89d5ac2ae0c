"""Measurements: each prints figures or ratios taken in one run."""
