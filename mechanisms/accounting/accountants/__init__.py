"""Accountants: which (ε, δ) events cost together, one file for each way to count."""
