"""Synthetic records linked into persons, so that noisy answers about persons hold; no record is changed."""
