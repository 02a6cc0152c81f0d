"""Scores by models that learn: from synthetic records for real ones, and to tell the one from the other."""
