"""Records that belong to persons: how they hang together, and how far a synthetic table keeps that; NOT private."""
