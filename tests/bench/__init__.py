"""Measurements of time and memory, never tests: `make bench`."""
