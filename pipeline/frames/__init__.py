"""Data frames in, releases as objects, data frames out."""
