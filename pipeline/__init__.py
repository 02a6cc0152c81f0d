"""The pipeline: files, settings and the order of things."""
