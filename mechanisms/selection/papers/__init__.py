"""Selections that repeat a paper, and their designs; the core stands without them."""
