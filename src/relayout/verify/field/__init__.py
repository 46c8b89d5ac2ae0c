"""Verification over a prime field: both models run exactly, so that no tolerance is needed"""
