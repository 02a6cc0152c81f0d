"""Scores of synthetic against raw tables: NOT private; imports mechanisms.public only."""

__distribution__ = "dp-synthesis-pipeline"
