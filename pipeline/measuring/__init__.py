"""Measuring: one round or several, with models in between, in one try or in several."""
