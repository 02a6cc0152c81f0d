"""Synthesizers that repeat a paper; the core stands without them."""
