"""Metrics of the challenges, N-CRiPT and ANITA; the core stands without them."""
