"""Scores of a run or of any two tables. NOT private."""
