"""Whole persons: noisy answers about them become targets, and records are linked until they fit. Post-processing."""
