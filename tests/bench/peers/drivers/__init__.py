"""Scripts that run in a peer's own environment: each reads one request and prints one JSON line last."""
