"""Strategies: each takes a layout problem and answers with an assignment."""
