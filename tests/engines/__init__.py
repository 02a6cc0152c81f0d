"""Engines: the same codes, sizes, weights and counts from each, and clear words where one cannot start."""
