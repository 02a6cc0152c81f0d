"""Consistency: noisy answers become non-negative marginals that agree."""
