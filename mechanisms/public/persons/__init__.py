"""Whole persons: who they are, what is asked about them, and what one of them adds to each answer."""
