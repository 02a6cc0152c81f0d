"""ANITA: accuracy over buckets, and distances to the closest records (Platzer 2020)."""
